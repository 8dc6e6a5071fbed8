package curve

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
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

// Decode reads what Append wrote.
func Decode(b []byte) (*Curve, error) {
	r := &reader{b: b}
	c := &Curve{stride: r.uvarint(), validationStride: r.uvarint(), validations: r.uvarint()}
	n := r.uvarint()
	switch {
	case r.err == nil && (!isPower(c.stride) || !isPower(c.validationStride)):
		r.fail("the distances of kept points, %d steps and %d validations, are not powers of two", c.stride, c.validationStride)
	case r.err == nil && n > JobPoints:
		r.fail("want at most %[2]d points, got %[1]d", n, JobPoints)
	}
	var before Point
	for i := uint64(0); i < n && r.err == nil; i++ {
		c.points = append(c.points, r.point(&before, i > 0))
	}
	if r.byte() == 1 {
		if c.best = r.point(new(Point), true); r.err == nil && !c.best.validated() {
			r.fail("the best point has no validation loss")
		}
	}
	if r.err == nil && len(r.b) > 0 {
		r.fail("%d bytes follow the end of the curve", len(r.b))
	}
	if r.err != nil {
		return nil, r.err
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

// reader reads a curve; after the first error it yields zeros.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s", ErrCurve, fmt.Sprintf(format, args...))
		r.b = nil
	}
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail("the curve ends too early")
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) byte() byte {
	if len(r.b) == 0 {
		r.fail("the curve ends too early")
		return 0
	}
	v := r.b[0]
	r.b = r.b[1:]
	return v
}

// loss reads a loss, which must be finite and not negative; NaN if the point has none.
func (r *reader) loss(has bool) float64 {
	if !has {
		return math.NaN()
	}
	if len(r.b) < 8 {
		r.fail("the curve ends too early")
		return 0
	}
	v := math.Float64frombits(binary.LittleEndian.Uint64(r.b))
	r.b = r.b[8:]
	if !known(v) {
		r.fail("the learning curve has a loss of %v, which is not possible", v)
	}
	return v
}

// point reads the point after the point before, and sets before; grows: the step must grow.
func (r *reader) point(before *Point, grows bool) Point {
	has, steps := r.byte(), r.uvarint()
	p := Point{Step: before.Step + steps, Training: r.loss(has&hasTraining != 0), Validation: r.loss(has&hasValidation != 0), Millis: Unknown}
	if has&hasMillis != 0 {
		millis := r.uvarint()
		if p.Millis = before.Millis + int64(millis); millis > math.MaxInt64 || p.Millis < before.Millis {
			r.fail("a time is before the time of the point before it")
		}
		before.Millis = p.Millis
	}
	if p.Step < before.Step || grows && steps == 0 || has > hasTraining|hasValidation|hasMillis {
		r.fail("step %d comes after step %d", p.Step, before.Step)
	}
	before.Step = p.Step
	return p
}
