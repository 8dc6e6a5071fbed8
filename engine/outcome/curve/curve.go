// Package curve records a job's learning curve: a bounded number of points, each with a
// step, its losses and the seconds of running. The steps and losses of the points are a
// function of the job alone: not of the times of commits, the number of workers or of
// restarts.
package curve

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/wire"
)

// The greatest number of points of a curve: of a job, and of one fold of a job of folds.
const (
	JobPoints  = 512
	FoldPoints = 64
)

// Unknown is Point.Millis where the time is not known.
const Unknown = -1

// Point is what was known at the end of a step.
type Point struct {
	Step       uint64
	Training   float64 // loss on the rows trained on, as K-L; NaN: not known
	Validation float64 // loss on the validation rows, as K-L; NaN: none was computed
	Millis     int64   // milliseconds of running; Unknown where nobody measured
}

// validated reports whether the point has a validation loss.
func (p *Point) validated() bool { return !math.IsNaN(p.Validation) }

// known reports whether the point has a loss.
func (p *Point) known() bool { return !math.IsNaN(p.Training) || p.validated() }

// same reports whether two points have the same losses at the same step.
func (p *Point) same(o *Point) bool {
	return p.Step == o.Step && math.Float64bits(p.Training) == math.Float64bits(o.Training) &&
		math.Float64bits(p.Validation) == math.Float64bits(o.Validation)
}

// Seconds returns the seconds of running, and whether they are known.
func (p *Point) Seconds() (s float64, known bool) { return float64(p.Millis) / 1000, p.Millis >= 0 }

// pointJSON is a Point in JSON: what is not known is left out.
type pointJSON struct {
	Step       uint64   `json:"step"`
	Training   *float64 `json:"training_loss,omitempty"`
	Validation *float64 `json:"validation_loss,omitempty"`
	Seconds    *float64 `json:"seconds,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (p Point) MarshalJSON() ([]byte, error) {
	v := pointJSON{Step: p.Step}
	if !math.IsNaN(p.Training) {
		v.Training = &p.Training
	}
	if p.validated() {
		v.Validation = &p.Validation
	}
	if s, known := p.Seconds(); known {
		v.Seconds = &s
	}
	return json.Marshal(v)
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *Point) UnmarshalJSON(b []byte) error {
	if bytes.HasPrefix(b, []byte(pointBegins)) && p.read(string(b)) {
		return nil
	}
	var v pointJSON
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	*p = Point{Step: v.Step, Training: math.NaN(), Validation: math.NaN(), Millis: Unknown}
	if v.Training != nil {
		p.Training = *v.Training
	}
	if v.Validation != nil {
		p.Validation = *v.Validation
	}
	if v.Seconds != nil {
		p.measured(*v.Seconds)
	}
	return nil
}

// measured sets the time, if a point can have it.
func (p *Point) measured(seconds float64) {
	if seconds >= 0 && seconds < 1e15 {
		millis := float64(seconds * 1000)
		p.Millis = int64(millis + 0.5)
	}
}

// pointBegins is how the JSON of a point begins.
const pointBegins = `{"step":`

// read reads the JSON that MarshalJSON writes, faster than package json does, since pages read many points. If the text
// is any other, read returns false and does not change the point.
func (p *Point) read(text string) bool {
	field := func(name string) (number string) {
		if rest, ok := strings.CutPrefix(text, name); ok {
			if end := strings.IndexAny(rest, ",}"); end > 0 {
				number, text = rest[:end], rest[end:]
			}
		}
		return number
	}
	ok, next := true, Point{Training: math.NaN(), Validation: math.NaN(), Millis: Unknown}
	float := func(name string, set func(float64)) {
		if number := field(name); number != "" {
			v, err := strconv.ParseFloat(number, 64)
			ok = ok && err == nil // a JSON value that ParseFloat accepts is a number
			set(v)
		}
	}
	step, err := strconv.ParseUint(field(pointBegins), 10, 64)
	next.Step = step
	float(`,"training_loss":`, func(v float64) { next.Training = v })
	float(`,"validation_loss":`, func(v float64) { next.Validation = v })
	float(`,"seconds":`, next.measured)
	if !ok || err != nil || text != "}" {
		return false
	}
	*p = next
	return true
}

// Curve is a learning curve, or the points that extend another one (see Extend). It has the
// points without a validation loss whose step is a multiple of one stride, and those with a
// validation loss whose number is a multiple of another. A stride doubles once it selects
// too many points. Two strides keep the points with a validation loss, which are rarer.
type Curve struct {
	stride           uint64 // of steps, a power of two
	validationStride uint64 // of validations, counted from 0, a power of two
	validations      uint64 // so far
	points           []Point
	best             Point // of the least validation loss, the first among equals; Step 0: none
}

// New returns a curve without points.
func New() *Curve { return &Curve{stride: 1, validationStride: 1} }

// Points returns the points by step, the one of the least validation loss among them. Their
// times do not go back, though leaders whose clocks differ may have measured them.
func (c *Curve) Points() []Point {
	list := append(make([]Point, 0, len(c.points)+1), c.points...)
	at, found := slices.BinarySearchFunc(list, c.best.Step, func(p Point, step uint64) int {
		return cmp.Compare(p.Step, step)
	})
	if found || c.best.Step == 0 {
		return list
	}
	best := c.best
	for _, next := range list[at:] {
		if next.Millis != Unknown { // less than best's, if a leader measured it whose clock is behind
			best.Millis = min(best.Millis, next.Millis)
			break
		}
	}
	return slices.Insert(list, at, best)
}

// Best returns the point of the least validation loss, and whether there is one.
func (c *Curve) Best() (Point, bool) { return c.best, c.best.Step > 0 }

// add adds the next point to a curve of at most limit points: at most limit/2 - 1 of either
// kind, since the best point and the last point are kept besides.
func (c *Curve) add(p Point, limit int) {
	most := limit/2 - 1
	stride, every := c.stride, c.validationStride
	switch {
	case p.validated():
		if c.best.Step == 0 || p.Validation < c.best.Validation {
			c.best = p
		}
		c.validations++
		if (c.validations-1)%every != 0 {
			return
		}
		c.points = append(c.points, p)
		for c.count(true, stride, every) > most {
			every *= 2
		}
	case p.Step%stride == 0:
		c.points = append(c.points, p)
		for c.count(false, stride, every) > most {
			stride *= 2
		}
	}
	c.coarsen(stride, every)
}

// count returns how many points, with or without a validation loss, these strides select.
func (c *Curve) count(validated bool, stride, every uint64) (n int) {
	c.each(stride, every, func(p *Point) {
		if p.validated() == validated {
			n++
		}
	})
	return n
}

// each calls do with the points that these strides select. They must be multiples of the
// curve's.
func (c *Curve) each(stride, every uint64, do func(*Point)) {
	number := uint64(0) // of a point with a validation loss
	for i := range c.points {
		p := &c.points[i]
		keep := p.Step%stride == 0
		if p.validated() {
			keep = number%every == 0
			number += c.validationStride
		}
		if keep {
			do(p)
		}
	}
}

// coarsen sets the strides, to multiples of the curve's, and drops the points that these do
// not select.
func (c *Curve) coarsen(stride, every uint64) {
	if stride == c.stride && every == c.validationStride {
		return
	}
	var kept []Point
	c.each(stride, every, func(p *Point) { kept = append(kept, *p) })
	c.points, c.stride, c.validationStride = kept, stride, every
}

// Coarsened returns the curve with at most limit points; limit is at least 4. It has the best
// and the last point.
func (c *Curve) Coarsened(limit int) *Curve {
	next, most := *c, limit/2-1
	for {
		stride, every := next.stride, next.validationStride
		if next.count(true, stride, every) > most {
			every *= 2
		}
		if next.count(false, stride, every) > most {
			stride *= 2
		}
		if stride == next.stride && every == next.validationStride {
			break
		}
		next.coarsen(stride, every)
	}
	last, have := c.lastPoint(), next.lastPoint()
	if last != nil && (have == nil || have.Step < last.Step) {
		next.points = append(slices.Clip(next.points), *last)
	}
	return &next
}

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
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(p.Training))
	}
	if p.validated() {
		has |= hasValidation
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(p.Validation))
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
	c := &Curve{stride: r.Uvarint("distance of kept steps"), validationStride: r.Uvarint("distance of kept validations"),
		validations: r.Uvarint("number of validations")}
	n := r.Uvarint("number of points")
	if bits.OnesCount64(c.stride) != 1 || bits.OnesCount64(c.validationStride) != 1 {
		r.Failf("the distances of kept points, %d steps and %d validations, are not powers of two", c.stride,
			c.validationStride)
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
		return nil, fmt.Errorf("%w: distances of kept points cannot become smaller: %d steps and %d validations, after %d "+
			"and %d", ErrCurve, next.stride, next.validationStride, c.stride, c.validationStride)
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

// point reads the point after the point before, and sets before for the next point. If grows is true, the step must
// grow.
func (r reader) point(before *Point, grows bool) Point {
	has, steps := r.U8("point"), r.Uvarint("step")
	p := Point{Step: before.Step + steps, Training: r.loss("training loss", has&hasTraining != 0),
		Validation: r.loss("validation loss", has&hasValidation != 0), Millis: Unknown}
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

// Recorder makes a curve from a Trainer's progress after each round. A point is complete,
// and added to the curve, when the next step begins. Until then it is a function of the
// Trainer's state: a new recorder with the curve and the Trainer of any round records the
// same points.
type Recorder struct {
	limit     int
	curve     *Curve
	last      Point // of the current step, not in the curve yet; not added if it has no loss
	has       bool  // last is set
	committed Mark  // the points before it are committed
}

// Mark is a position in a recorder's curve; the zero Mark is its beginning.
type Mark struct {
	any  bool
	step uint64 // of the last point before it
}

// NewRecorder returns a recorder of at most limit points that continues c, whose points are
// committed already, and owns c; nil: there are no points yet.
func NewRecorder(limit int, c *Curve) *Recorder {
	if c == nil {
		return &Recorder{limit: limit, curve: New()}
	}
	r := &Recorder{limit: limit, curve: c}
	r.committed = r.mark()
	return r
}

// Observe records the progress after a round, or of a Trainer that continues from a state.
// millis are milliseconds of running, or Unknown. A step without known losses at its end has
// no point.
func (r *Recorder) Observe(p round.Progress, millis int64) {
	next := pointOf(p)
	begins := beginsRefit(p)
	if r.has && begins && next.Step == r.last.Step && next.validated() {
		r.last.Validation = next.Validation // by which training ended
	}
	if r.has && (begins || next.Step != r.last.Step) {
		r.complete()
	}
	if begins || r.has && next.same(&r.last) {
		return
	}
	next.Millis = millis
	if n := len(r.curve.points); n > 0 && millis != Unknown {
		next.Millis = max(millis, r.curve.points[n-1].Millis)
	}
	r.last, r.has = next, true
}

// complete adds the last point.
func (r *Recorder) complete() {
	r.has = false
	if r.last.known() {
		r.curve.add(r.last, r.limit)
	}
}

// Stepped is implemented by Trainers that take several steps in one round, such as a forest
// that collects its trees. StepLosses returns the training loss after each step so far, from
// step 1 on.
type Stepped interface{ StepLosses() []float64 }

// Follow calls Observe with a Trainer's progress after a round, and before that with each
// step of the round, whose times are unknown.
func (r *Recorder) Follow(t round.Trainer, millis int64) {
	p := t.Progress()
	from := r.last.Step
	if s, ok := t.(Stepped); ok && p.Step > from+1 {
		losses := s.StepLosses()
		for step := from + 1; step < min(p.Step, uint64(len(losses))); step++ {
			r.Observe(round.Progress{Step: step, Steps: p.Steps, Loss: losses[step-1]}, Unknown)
		}
	}
	r.Observe(p, millis)
}

// End adds the last point: the job is done.
func (r *Recorder) End() {
	if !r.has {
		return
	}
	if r.complete(); !r.last.known() {
		return
	}
	if n := len(r.curve.points); n == 0 || r.curve.points[n-1].Step != r.last.Step {
		r.curve.points = append(r.curve.points, r.last)
	}
}

// Curve returns the curve so far, without the current step. The recorder continues to use it.
func (r *Recorder) Curve() *Curve { return r.curve }

// Uncommitted returns the points that are not committed yet, as a curve for Extend, and the
// Mark to call Committed with once they are.
func (r *Recorder) Uncommitted() (*Curve, Mark) {
	rest := *r.curve
	from := 0
	for r.committed.any && from < len(rest.points) && rest.points[from].Step <= r.committed.step {
		from++
	}
	rest.points = rest.points[from:len(rest.points):len(rest.points)]
	return &rest, r.mark()
}

// Committed says that the points before m are committed: Uncommitted leaves them out.
func (r *Recorder) Committed(m Mark) { r.committed = m }

// mark returns the end of the curve so far.
func (r *Recorder) mark() Mark {
	if p := r.curve.lastPoint(); p != nil {
		return Mark{true, p.Step}
	}
	return Mark{}
}

// pointOf returns the point of a progress.
func pointOf(p round.Progress) Point {
	next := Point{Step: p.Step, Training: math.NaN(), Validation: math.NaN(), Millis: Unknown}
	if known(p.Loss) {
		next.Training = p.Loss
	}
	if p.ValidatedAt == p.Step && p.Step > 0 && known(p.Validation) {
		next.Validation = p.Validation
	}
	return next
}

// beginsRefit reports whether p is the beginning of a refit. Its step is also the last step
// before the refit, which has the point.
func beginsRefit(p round.Progress) bool { return p.Refit > 0 && p.Step == p.Steps-p.Refit }

// known reports whether a loss is known: finite and not negative.
func known(loss float64) bool { return loss >= 0 && !math.IsInf(loss, 1) }
