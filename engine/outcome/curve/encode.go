package curve

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/coppice-ldl/coppice/internal/wire"
)

// MaxBytes bounds an encoded curve.
const MaxBytes = 20 << 10

// ErrCurve is wrapped by every error about the bytes of a curve.
var ErrCurve = errors.New("the learning curve is damaged")

// Bits of a point's first byte: the fields that the point has.
const (
	hasTraining = 1 << iota
	hasValidation
	hasMillis
)

// Append encodes the curve, in at most MaxBytes for JobPoints points: as varints the stride
// of steps, the stride of validations, the number of validations and of points; then the
// points; then a byte, which is 1 if the best point follows. A point is a byte with the bits
// of its fields, the steps since the previous point as a varint, its losses as float64,
// little-endian, and the milliseconds since the previous point as a varint. The best point
// has its step and its milliseconds from 0.
func (c *Curve) Append(dst []byte) []byte {
	for _, v := range []uint64{c.stride, c.validationStride, c.validations, uint64(len(c.points))} {
		dst = binary.AppendUvarint(dst, v)
	}
	var before Point
	for _, p := range c.points {
		dst = p.append(dst, &before)
	}
	if c.best.Step == 0 {
		return append(dst, 0)
	}
	return c.best.append(append(dst, 1), new(Point))
}

// Checked returns the encoded curve, or nil if Decode would refuse it: a curve is for display,
// and no job may fail because of it.
func (c *Curve) Checked() []byte {
	b := c.Append(nil)
	if _, err := Decode(b); err != nil || len(b) > MaxBytes {
		return nil
	}
	return b
}

// append encodes the point after the point before, and sets before for the next point.
func (p *Point) append(dst []byte, before *Point) []byte {
	at, has := len(dst), byte(0)
	dst = append(dst, 0)
	dst = binary.AppendUvarint(dst, p.Step-before.Step)
	if !math.IsNaN(p.Training) {
		has |= hasTraining
		dst = binary.LittleEndian.AppendUint64(dst, bits(p.Training))
	}
	if p.validated() {
		has |= hasValidation
		dst = binary.LittleEndian.AppendUint64(dst, bits(p.Validation))
	}
	if p.Millis >= 0 {
		has |= hasMillis
		dst = binary.AppendUvarint(dst, uint64(p.Millis-before.Millis))
		before.Millis = p.Millis
	}
	dst[at], before.Step = has, p.Step
	return dst
}

// Decode reads what Append wrote. Errors wrap ErrCurve.
func Decode(b []byte) (*Curve, error) {
	r := reader{wire.NewReader(b)}
	c := &Curve{stride: r.Uvarint("distance of kept steps"), validationStride: r.Uvarint("distance of kept validations"), validations: r.Uvarint("number of validations")}
	n := r.Uvarint("number of points")
	if !isPower(c.stride) || !isPower(c.validationStride) {
		r.Failf("the distances of kept points, %d steps and %d validations, are not powers of two", c.stride, c.validationStride)
	}
	if n > JobPoints {
		r.Failf("want at most %[2]d points, got %[1]d", n, JobPoints)
	}
	var before Point
	for i := uint64(0); i < n && r.Err() == nil; i++ {
		c.points = append(c.points, r.point(&before, i > 0))
	}
	if r.U8("best point") == 1 {
		if c.best = r.point(new(Point), true); !c.best.validated() {
			r.Failf("the best point has no validation loss")
		}
	}
	if err := r.End(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCurve, err)
	}
	return c, nil
}

func isPower(v uint64) bool { return v > 0 && v&(v-1) == 0 }

// Equal reports whether two curves have the same points, times and strides; both may be nil.
func (c *Curve) Equal(o *Curve) bool {
	if c == nil || o == nil {
		return c == o
	}
	return bytes.Equal(c.Append(nil), o.Append(nil))
}

// Extend returns the encoded curve that encoded (empty at the beginning) becomes with rest,
// the encoded Uncommitted of a Recorder of the same job. rest may have points that encoded
// already has, if a commit took effect that the recorder did not know of; they are ignored.
// Errors wrap ErrCurve.
func Extend(encoded, rest []byte) ([]byte, error) {
	if len(rest) == 0 {
		return encoded, nil
	}
	next, err := Decode(rest)
	if err != nil || len(encoded) == 0 {
		return rest[:len(rest):len(rest)], err
	}
	c, err := Decode(encoded)
	if err != nil {
		return nil, err
	}
	if next.stride < c.stride || next.validationStride < c.validationStride || next.validations < c.validations {
		return nil, fmt.Errorf("%w: distances of kept points cannot become smaller: %d steps and %d validations, after %d and %d", ErrCurve, next.stride, next.validationStride, c.stride, c.validationStride)
	}
	last := c.lastPoint()
	c.coarsen(next.stride, next.validationStride)
	for _, p := range next.points {
		if last != nil && p.Step <= last.Step {
			continue
		}
		c.points = append(c.points, p.notBefore(last))
	}
	c.validations = next.validations
	if next.best.Step != c.best.Step { // the same point keeps its first time
		c.best = next.best.notBefore(last)
	}
	if len(c.points) > JobPoints {
		return nil, fmt.Errorf("%w: want at most %[2]d points, got %[1]d", ErrCurve, len(c.points), JobPoints)
	}
	return c.Append(nil), nil
}

// notBefore returns p with a time, if known, of at least last's.
func (p Point) notBefore(last *Point) Point {
	if last != nil && p.Millis >= 0 {
		p.Millis = max(p.Millis, last.Millis)
	}
	return p
}

// lastPoint returns the last point, or nil.
func (c *Curve) lastPoint() *Point {
	if len(c.points) == 0 {
		return nil
	}
	p := c.points[len(c.points)-1]
	return &p
}

// reader reads the points of a curve.
type reader struct{ *wire.Reader }

// loss reads a loss, which must be finite and not negative. It is NaN if the point has none.
func (r reader) loss(field string, has bool) float64 {
	if !has {
		return math.NaN()
	}
	v := math.Float64frombits(r.U64(field))
	if !known(v) {
		r.Failf("the learning curve has a loss of %v, which is not possible", v)
	}
	return v
}

// point reads the point after the point before, and sets before for the next point. If grows is true, the step must grow.
func (r reader) point(before *Point, grows bool) Point {
	has, steps := r.U8("point"), r.Uvarint("step")
	p := Point{Step: before.Step + steps, Training: r.loss("training loss", has&hasTraining != 0), Validation: r.loss("validation loss", has&hasValidation != 0), Millis: Unknown}
	if has&hasMillis != 0 {
		millis := r.Uvarint("time")
		if p.Millis = before.Millis + int64(millis); millis > math.MaxInt64 || p.Millis < before.Millis {
			r.Failf("a time is before the time of the point before it")
		}
		before.Millis = p.Millis
	}
	if p.Step < before.Step || grows && steps == 0 || has > hasTraining|hasValidation|hasMillis {
		r.Failf("step %d comes after step %d", p.Step, before.Step)
	}
	before.Step = p.Step
	return p
}
