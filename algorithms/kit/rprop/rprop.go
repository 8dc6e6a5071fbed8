// Package rprop minimises a function by resilient back-propagation (Riedmiller and Braun 1993):
// each variable has a step of its own, and the gradient gives only the direction of the step. The step
// grows while the derivative keeps its sign, and shrinks where the sign changes; the variable
// then stays, and its derivative counts as 0 at the next update.
//
// It is a state machine and not a loop with a callback, as package lbfgs is: one evaluation is
// one iteration.
package rprop

import "github.com/coppice-ldl/coppice/algorithms/kit/fields"

// Options says how the steps change, and when a Minimiser ends.
type Options struct {
	Iterations  int     // how many there are
	First       float64 // the first step of each variable, from Least to Most
	Least, Most float64 // the bounds of a step
	Grow        float64 // the factor of a step whose derivative keeps its sign
	Shrink      float64 // the factor of a step whose derivative changes its sign
}

// Minimiser looks for a minimum. Its memory is 3·n float64 for n variables.
type Minimiser struct {
	options    Options
	x          []float64 // the point
	last       []float64 // the derivatives of the last evaluation, or 0
	step       []float64
	iterations uint64
}

// New returns a Minimiser that begins at a point, which it copies.
func New(start []float64, o Options) *Minimiser {
	m := &Minimiser{options: o, x: make([]float64, len(start)), last: make([]float64, len(start)),
		step: make([]float64, len(start))}
	copy(m.x, start)
	for i := range m.step {
		m.step[i] = o.First
	}
	return m
}

// Bytes returns the memory of a Minimiser of n variables.
func Bytes(n int) int64 { return 8 * 3 * int64(n) }

// Point returns the point at which Tell wants the gradient. It is valid until Tell.
func (m *Minimiser) Point() []float64 { return m.x }

// Best returns the point after the last iteration. It is valid until Tell.
func (m *Minimiser) Best() []float64 { return m.x }

// Iterations returns the number of iterations that are done.
func (m *Minimiser) Iterations() int { return int(m.iterations) }

// Done reports whether all iterations are done. Tell must not be called afterwards.
func (m *Minimiser) Done() bool { return m.iterations >= uint64(m.options.Iterations) }

// Tell hands over the gradient at Point; the function's value changes nothing. A derivative that is
// not a number moves nothing.
func (m *Minimiser) Tell(_ float64, g []float64) {
	m.iterations++
	for i, d := range g {
		now := sign(d)
		switch now * sign(m.last[i]) {
		case 1:
			m.step[i] = min(float64(m.step[i]*m.options.Grow), m.options.Most)
		case -1:
			m.step[i] = max(float64(m.step[i]*m.options.Shrink), m.options.Least)
			m.last[i] = 0
			continue
		}
		m.x[i] -= float64(now * m.step[i])
		m.last[i] = d
	}
}

// sign returns the sign of x, 0 of 0 and of what is not a number.
func sign(x float64) float64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return 0
}

// State lists the fields of the minimiser. A state belongs to the number of variables; options
// are not part of it.
func (m *Minimiser) State(l *fields.List) {
	l.Uint64(&m.iterations)
	l.Check(m.iterations <= uint64(m.options.Iterations),
		"the saved state is at iteration %d of %d, which is not possible", m.iterations, m.options.Iterations)
	l.Float64s(m.x, m.last, m.step)
	if !l.Reading() {
		return
	}
	for i, step := range m.step {
		l.Check(step >= m.options.Least && step <= m.options.Most, "the step size of weight %d is %v, which is not possible",
			i, step)
	}
}
