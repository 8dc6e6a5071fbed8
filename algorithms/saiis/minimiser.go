package saiis

import (
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/fullbatch"
)

var _ fullbatch.Optimiser = (*minimiser)(nil)

// minimiser is improved iterative scaling as a state machine: one evaluation a step. The evaluation
// of new weights has δ = 0, and ends the iteration that made them. The ones after it look for the
// roots δ at the same weights, which then move by δ.
//
// What Tell takes in the place of a gradient are the changes of δ that newton gives, 0 where a root
// is found.
type minimiser struct {
	iterations uint64  // at most
	mostSteps  uint64  // Newton steps of an iteration, at most
	limit      float64 // of |δ|

	weights   []float64 // after the last iteration
	changes   []float64 // δ
	low, high []float64 // each root is between these
	points    uint64    // how many weights were evaluated
	steps     uint64    // Newton steps of the iteration so far
	moves     bool      // the next evaluation is that of weights + δ
	ended     bool      // nothing changes any more

	next []float64 // weights + δ, where these are evaluated next
}

// newMinimiser returns a minimiser of n weights, which begin at 0.
func newMinimiser(n int, c *Config) *minimiser {
	v := make([]float64, 5*n)
	part := func(i int) []float64 { return v[i*n : i*n+n : i*n+n] }
	return &minimiser{
		iterations: uint64(c.Iterations), mostSteps: uint64(c.NewtonSteps), moves: true,
		weights: part(0), changes: part(1), low: part(2), high: part(3), next: part(4),
	}
}

// minimiserBytes is the memory of a minimiser's state.
func minimiserBytes(n int) int64 { return 8*4*int64(n) + 64 }

// Point implements fullbatch.Optimiser: the weights of the evaluation.
func (m *minimiser) Point() []float64 {
	if m.moves {
		return m.next
	}
	return m.weights
}

// version returns how many weights there were before those of Point, these included.
func (m *minimiser) version() uint64 {
	if m.moves {
		return m.points + 1
	}
	return m.points
}

// Best implements fullbatch.Optimiser.
func (m *minimiser) Best() []float64 { return m.weights }

// Iterations implements fullbatch.Optimiser.
func (m *minimiser) Iterations() int { return int(max(m.points, 1) - 1) }

// Done implements fullbatch.Optimiser.
func (m *minimiser) Done() bool { return m.ended || m.points > m.iterations }

// Tell implements fullbatch.Optimiser.
func (m *minimiser) Tell(_ float64, steps []float64) {
	found := allZero(steps)
	if m.moves {
		m.arrive()
		if m.ended = found; m.Done() {
			return
		}
	}
	for i, step := range steps {
		m.narrow(i, step)
	}
	if found || m.steps == m.mostSteps {
		m.leave(steps)
		return
	}
	m.steps++
	for i, step := range steps {
		if step != 0 {
			m.changes[i] = m.step(i, step)
		}
	}
}

// arrive ends an iteration at weights that were evaluated, and begins the next with δ = 0.
func (m *minimiser) arrive() {
	copy(m.weights, m.next)
	m.points++
	m.moves, m.steps = false, 0
	clear(m.changes)
	for i := range m.low {
		m.low[i], m.high[i] = -m.limit, m.limit
	}
}

// narrow makes δ an end of the interval of a root to which the step leads.
func (m *minimiser) narrow(i int, step float64) {
	switch {
	case step > 0:
		m.low[i] = m.changes[i]
	case step < 0:
		m.high[i] = m.changes[i]
	}
}

// step returns δ of a weight after a step of Newton's method: within the interval, and in its
// middle if the step leads beyond an end that is no bound of δ.
func (m *minimiser) step(i int, by float64) float64 {
	low, high, to := m.low[i], m.high[i], m.changes[i]+by
	switch {
	case to > low && to < high:
		return to
	case to >= high && high == m.limit:
		return high
	case to <= low && low == -m.limit:
		return low
	}
	return low + float64((high-low)/2)
}

// leave ends the search for the roots: where a root is not found, δ is the end of its interval
// that is nearest to 0.
func (m *minimiser) leave(steps []float64) {
	for i, step := range steps {
		if step != 0 {
			m.changes[i] = max(m.low[i], min(m.high[i], 0))
		}
	}
	if m.ended = allZero(m.changes); m.ended {
		return
	}
	m.moves = true
	m.move()
}

// move sets next.
func (m *minimiser) move() {
	for i, w := range m.weights {
		m.next[i] = w + m.changes[i]
	}
}

func allZero(v []float64) bool {
	for _, x := range v {
		if x != 0 {
			return false
		}
	}
	return true
}

// State implements fullbatch.Optimiser.
func (m *minimiser) State(l *fields.List) {
	l.Uint64(&m.points, &m.steps)
	l.Bool(&m.moves, &m.ended)
	l.Float64s(m.weights, m.changes, m.low, m.high)
	l.Check(m.steps <= m.mostSteps && (m.points > 0 || m.moves),
		"the saved state has %d search steps at weight version %d, which is not possible", m.steps, m.points)
	if l.Reading() && m.moves {
		m.move()
	}
}
