// Package curve records a job's learning curve: a bounded number of points, each with a
// step, its losses and the seconds of running. The steps and losses of the points are a
// function of the job alone: not of the times of commits, the number of workers or of
// restarts.
package curve

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
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
	return p.Step == o.Step && bits(p.Training) == bits(o.Training) && bits(p.Validation) == bits(o.Validation)
}

func bits(v float64) uint64 { return math.Float64bits(v) }

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
	if v.Seconds != nil && *v.Seconds >= 0 && *v.Seconds < 1e15 {
		millis := float64(*v.Seconds * 1000)
		p.Millis = int64(millis + 0.5)
	}
	return nil
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
	at, found := slices.BinarySearchFunc(list, c.best.Step, func(p Point, step uint64) int { return cmp.Compare(p.Step, step) })
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
