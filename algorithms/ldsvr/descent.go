package ldsvr

import (
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
)

// The stages of a descent.
const (
	stageBegin   byte = iota // the first point is to be evaluated
	stageWhole               // the solution of the last system is
	stageShorter             // a point between is
	stageHere                // a point between was taken: its system is wanted
	stageEnd
	stages
)

// leastStep is the share of a direction below which no point is tried.
const leastStep = 1e-10

// descent is iteratively reweighted least squares with shorter steps where the objective does not
// fall, as a state machine: one evaluation of a point at a time. A point is β, then b.
type descent struct {
	iterations uint64 // at most
	tolerance  float64

	stage     byte
	done      uint64  // iterations
	value     float64 // of the objective at the point; known after stageBegin
	step      float64 // of the trial
	point     []float64
	direction []float64
}

func newDescent(c *Config, n int) *descent {
	return &descent{
		iterations: uint64(c.Iterations), tolerance: c.Tolerance,
		point: make([]float64, n), direction: make([]float64, n),
	}
}

// state lists the fields of a state.
func (x *descent) state(l *fields.List) {
	l.Byte(&x.stage)
	l.Uint64(&x.done)
	l.Float64(&x.value, &x.step)
	l.Float64s(x.point, x.direction)
	l.Check(x.stage < stages && x.done <= x.iterations, "stage %d of the fit is not possible at iteration %d", x.stage, x.done)
	l.Check(finite(x.value) && x.value >= 0 && x.step >= 0 && x.step <= 1, "the fit has the objective %v and the step size %v, which is not possible", x.value, x.step)
	for _, v := range [][]float64{x.point, x.direction} {
		for _, w := range v {
			l.Check(w >= -mostValue && w <= mostValue, "the fit has the value %v, which is not possible", w)
		}
	}
}

// mostValue is greater than any value of a fit.
const mostValue = 1e100

func finite(x float64) bool { return x-x == 0 }

// trial sets p to the point that is evaluated next.
func (x *descent) trial(p []float64) {
	for i, v := range x.point {
		p[i] = v
		if x.stage == stageWhole || x.stage == stageShorter {
			p[i] += float64(x.step * x.direction[i])
		}
	}
}

// wantsSystem reports whether the evaluation of the trial also wants the least-squares system
// there.
func (x *descent) wantsSystem() bool { return x.stage != stageShorter }

// take takes the objective at the trial. It reports whether the solution of the system there is
// wanted: turn takes it.
func (x *descent) take(value float64) bool {
	switch x.stage {
	case stageBegin:
		x.value = value
		return true
	case stageHere:
		return true
	}
	if !(value < x.value) {
		if x.step /= 10; x.step < leastStep {
			x.stage = stageEnd
		} else {
			x.stage = stageShorter
		}
		return false
	}
	x.trial(x.point)
	last, whole := x.value-value <= float64(x.tolerance*x.value), x.stage == stageWhole
	x.value, x.stage = value, stageHere
	if x.done++; last || x.done == x.iterations {
		x.stage = stageEnd
	}
	return whole && x.stage != stageEnd
}

// turn goes from the point to a solution. If the solution is the point, the descent has ended.
func (x *descent) turn(solution []float64) {
	moves := false
	for i, v := range solution {
		x.direction[i] = v - x.point[i]
		moves = moves || x.direction[i] != 0
	}
	if x.stage, x.step = stageWhole, 1; !moves {
		x.stage = stageEnd
	}
}
