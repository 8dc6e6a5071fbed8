// Package lbfgs minimises a smooth function of many variables by the limited-memory method of
// Broyden, Fletcher, Goldfarb and Shanno (Liu and Nocedal 1989), with steps that satisfy the
// strong Wolfe conditions (Moré and Thuente 1994).
//
// It is a state machine and not a loop with a callback: the function is evaluated by a round
// on workers, and a job can be cut between any two evaluations.
//
//	m := lbfgs.New(start, lbfgs.Options{Iterations: 300})
//	for !m.Done() {
//		f, g := evaluate(m.Point())
//		m.Tell(f, g)
//	}
//	best := m.Best()
package lbfgs

import (
	"math"

	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Options says when a Minimiser ends. The zero value ends where no step lowers the function.
type Options struct {
	// Iterations is the greatest number of accepted steps; 0: no bound.
	Iterations int
	// Gradient is the greatest absolute element of the gradient at which the point counts as
	// a minimum.
	Gradient float64
	// Fall is the fall of the function in one iteration, as a share of the greater of 1 and
	// the function's absolute values, at which the minimiser stops; 0: it does not stop by this.
	Fall float64
}

// Reason says why a Minimiser ended.
type Reason uint8

// The reasons. Running is the reason of one that has not ended.
const (
	Running Reason = iota
	Iterations
	Gradient
	Fall
	NoStep    // no step along the last directions lowers the function
	NotFinite // the function or its gradient is not finite at the start
	reasons
)

// String returns the reason in words.
func (r Reason) String() string {
	return [...]string{
		"the minimisation has not ended", "the maximum number of iterations is reached", "the gradient is small enough",
		"an iteration lowers the function too little",
		"no step lowers the function", "the objective function is not finite at the start", "unknown",
	}[min(r, reasons)]
}

// Minimiser looks for a minimum. Its memory is (2·10 + 4)·n float64 for n variables.
type Minimiser struct {
	options Options

	x, g      []float64 // the best point so far and the gradient there
	direction []float64 // of the search under way
	point     []float64 // x + step·direction: where the function is wanted
	f         float64   // at x
	begun     bool      // f and g are known
	restarted bool      // the direction is -g because searches along others failed
	reason    Reason

	iterations  uint64
	evaluations uint64
	memory      memory
	search      search
}

// New returns a Minimiser that begins at a point, which it copies.
func New(start []float64, o Options) *Minimiser {
	n := len(start)
	m := &Minimiser{
		options: o, x: make([]float64, n), g: make([]float64, n), direction: make([]float64, n), point: make([]float64, n),
		memory: newMemory(n),
	}
	copy(m.x, start)
	copy(m.point, start)
	return m
}

// RestartAt begins again at a point, which it copies, for another function, and forgets all else.
func (m *Minimiser) RestartAt(start []float64, o Options) {
	copy(m.x, start)
	m.memory.scale = 0
	m.Restart(o)
}

// Restart begins again at Best, for a similar function, and forgets all else. The first step is no longer than the
// gradient.
func (m *Minimiser) Restart(o Options) {
	m.memory.forget()
	copy(m.point, m.x)
	m.options, m.begun, m.restarted, m.reason = o, false, false, Running
	m.iterations, m.evaluations = 0, 0
}

// Point returns the point at which Tell wants the function. It is valid until Tell.
func (m *Minimiser) Point() []float64 { return m.point }

// Best returns the point of the least value so far; it is valid until Tell.
func (m *Minimiser) Best() []float64 { return m.x }

// Value returns the function at Best; it is not a number before the first Tell.
func (m *Minimiser) Value() float64 {
	if !m.begun {
		return math.NaN()
	}
	return m.f
}

// Slope returns the greatest absolute element of the gradient at Best; before the first Tell it is 0, and after a
// restart that of the search before.
func (m *Minimiser) Slope() float64 { return greatest(m.g) }

// Iterations returns the number of accepted steps.
func (m *Minimiser) Iterations() int { return int(m.iterations) }

// Evaluations returns the number of calls of Tell.
func (m *Minimiser) Evaluations() int { return int(m.evaluations) }

// Done reports whether the minimiser has ended. Tell must not be called afterwards.
func (m *Minimiser) Done() bool { return m.reason != Running }

// Reason says why the minimiser ended.
func (m *Minimiser) Reason() Reason { return m.reason }

// Tell hands over the function and its gradient at Point. It copies the gradient. Values that
// are not finite count as a step that is too long.
func (m *Minimiser) Tell(f float64, g []float64) {
	m.evaluations++
	if !m.begun {
		m.begin(f, g)
		return
	}
	switch slope := num.Dot64(g, m.direction); m.search.next(f, slope) {
	case searching:
		m.aim()
	case accepted:
		m.accept(f, g)
	case failed:
		m.restart()
	}
}

// begin takes the function at the start.
func (m *Minimiser) begin(f float64, g []float64) {
	m.begun, m.f = true, f
	copy(m.g, g)
	switch {
	case !finite(f) || !finite(greatest(g)):
		m.reason = NotFinite
	case greatest(g) <= m.options.Gradient:
		m.reason = Gradient
	default:
		m.descend()
	}
}

// accept makes the trial the best point and goes on from there.
func (m *Minimiser) accept(f float64, g []float64) {
	m.memory.remember(m.x, m.g, m.point, g)
	fall := (m.f - f) / max(math.Abs(m.f), math.Abs(f), 1)
	copy(m.x, m.point)
	copy(m.g, g)
	m.f, m.restarted = f, false
	m.iterations++
	switch {
	case greatest(g) <= m.options.Gradient:
		m.reason = Gradient
	case m.options.Fall > 0 && fall <= m.options.Fall:
		m.reason = Fall
	case m.options.Iterations > 0 && m.iterations >= uint64(m.options.Iterations):
		m.reason = Iterations
	default:
		m.descend()
	}
}

// restart follows a search without success: once along the negative gradient, then the
// minimiser ends.
func (m *Minimiser) restart() {
	if m.memory.count == 0 || m.restarted {
		m.reason = NoStep
		return
	}
	m.memory.forget()
	m.restarted = true
	m.descend()
}

// descend begins a search along the direction of the method, with the step 1. If nothing is remembered, the direction
// is the negative gradient. The first step of all is then 1 long, and a later one at most 1 long.
func (m *Minimiser) descend() {
	m.memory.direction(m.direction, m.g)
	slope := num.Dot64(m.g, m.direction)
	if !(slope < 0) { // by rounding
		m.restart()
		return
	}
	step := 1.0
	if m.memory.count == 0 {
		step = 1 / math.Sqrt(num.Dot64(m.g, m.g))
		if m.memory.scale > 0 {
			step = min(1, step)
		}
	}
	m.search.begin(m.f, slope, step)
	m.aim()
}

// aim sets the point of the search's step.
func (m *Minimiser) aim() {
	for i, d := range m.direction {
		m.point[i] = m.x[i] + float64(m.search.step*d)
	}
}

// greatest returns the greatest absolute element; not a number if an element is none.
func greatest(v []float64) float64 {
	most := 0.0
	for _, x := range v {
		most = max(most, math.Abs(x))
	}
	return most
}

// Bytes is the memory of a Minimiser of n variables; its state is no longer.
func Bytes(n int) int64 { return 8*(2*pairs+4)*int64(n) + 512 }

// pairs is how many changes of point and gradient the method remembers.
const pairs = 10

// memory holds the last changes of the point (s) and of the gradient (y), the newest last.
type memory struct {
	n     int
	count int
	next  int       // where the next pair goes, in a ring
	s, y  []float64 // pairs×n
	rho   []float64 // pairs: 1 / sᵀy
	scale float64   // sᵀy / yᵀy of the newest pair, the first guess of the inverse Hessian; 0 before the first pair
}

func newMemory(n int) memory {
	return memory{n: n, s: make([]float64, pairs*n), y: make([]float64, pairs*n), rho: make([]float64, pairs)}
}

func (h *memory) forget() { h.count, h.next = 0, 0 }

// pair returns pair i, where 0 is the oldest.
func (h *memory) pair(i int) (s, y []float64, rho float64) {
	k := (h.next - h.count + i + pairs) % pairs
	return h.s[k*h.n : (k+1)*h.n], h.y[k*h.n : (k+1)*h.n], h.rho[k]
}

// curvature is the least sᵀy / yᵀy at which a pair is remembered: with less, rounding decides.
const curvature = 2.2e-16

// remember adds the change from point x0 with gradient g0 to point x1 with gradient g1.
func (h *memory) remember(x0, g0, x1, g1 []float64) {
	s, y := h.s[h.next*h.n:(h.next+1)*h.n], h.y[h.next*h.n:(h.next+1)*h.n]
	if h.count == pairs {
		h.count-- // the place of the oldest is taken
	}
	for i := range s {
		s[i], y[i] = x1[i]-x0[i], g1[i]-g0[i]
	}
	sy, yy := num.Dot64(s, y), num.Dot64(y, y)
	if !(sy > curvature*yy) {
		return
	}
	h.rho[h.next], h.scale = 1/sy, sy/yy
	h.next, h.count = (h.next+1)%pairs, h.count+1
}

// direction sets d to -H g, with H the method's estimate of the inverse Hessian: the two loops
// of Nocedal 1980.
func (h *memory) direction(d, g []float64) {
	for i, v := range g {
		d[i] = -v
	}
	if h.count == 0 {
		return
	}
	var alpha [pairs]float64
	for i := h.count - 1; i >= 0; i-- {
		s, y, rho := h.pair(i)
		alpha[i] = rho * num.Dot64(s, d)
		num.AddScaled64(d, -alpha[i], y)
	}
	for i := range d {
		d[i] *= h.scale
	}
	for i := range h.count {
		s, y, rho := h.pair(i)
		num.AddScaled64(d, alpha[i]-float64(rho*num.Dot64(y, d)), s)
	}
}

// State lists the fields of the minimiser. A state belongs to the number of variables; options
// are not part of it.
func (m *Minimiser) State(l *fields.List) {
	l.Byte((*byte)(&m.reason))
	l.Check(m.reason < reasons, "the saved state has the unknown reason %d for the end of the fit", m.reason)
	l.Bool(&m.begun, &m.restarted)
	l.Uint64(&m.iterations, &m.evaluations)
	l.Float64(&m.f)
	l.Float64s(m.x, m.g, m.direction)
	m.memory.state(l)
	m.search.state(l)
	if !l.Reading() {
		return
	}
	if m.begun {
		m.aim()
	} else {
		copy(m.point, m.x)
	}
}

func (h *memory) state(l *fields.List) {
	count, next := uint64(h.count), uint64(h.next)
	l.Uint64(&count, &next)
	l.Check(count <= pairs && next < pairs, "the saved state of L-BFGS is damaged: %d stored steps, with the next at "+
		"position %d, are not possible", count, next)
	l.Float64(&h.scale)
	l.Float64s(h.rho, h.s, h.y)
	h.count, h.next = int(count%(pairs+1)), int(next%pairs)
}

func (s *search) state(l *fields.List) {
	for _, e := range []*end{&s.start, &s.best, &s.other} {
		l.Float64(&e.step, &e.f, &e.slope)
	}
	l.Float64(&s.step, &s.least, &s.most, &s.width, &s.widthBefore)
	l.Bool(&s.bracketed, &s.settled)
	l.Uint64(&s.trials)
}
