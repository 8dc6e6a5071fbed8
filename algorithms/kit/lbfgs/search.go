package lbfgs

import (
	"math"
)

// The strong Wolfe conditions on a step t along a direction of slope f'(0) < 0:
// f(t) <= f(0) + decrease·t·f'(0) and |f'(t)| <= flatness·|f'(0)|.
const (
	decrease = 1e-3
	flatness = 0.9
)

const (
	mostTrials = 20   // evaluations of one search
	narrow     = 0.1  // share of the greater end at which a bracket is not searched further
	longest    = 1e10 // step
	reachLeast = 1.1  // a next step without a bracket is farther by this share of the last change
	reachMost  = 4.0  // and no farther than by this one
	shrink     = 0.66 // share to which two trials must reduce a bracket, or it is halved
)

// verdict is what search.next says of a trial.
type verdict uint8

const (
	searching verdict = iota
	accepted
	failed
)

// end is one step that was tried, with the function and its slope there.
type end struct{ step, f, slope float64 }

// search looks for a step that satisfies the strong Wolfe conditions: the algorithm of Moré and
// Thuente 1994. Best is the step of the least function value so far; if bracketed, a step that
// satisfies the conditions lies between best and other.
type search struct {
	start       end // at step 0
	best, other end
	step        float64 // the trial
	least, most float64 // bounds of the next trial
	width       float64 // of the bracket, and of the one before
	widthBefore float64
	bracketed   bool
	settled     bool // a trial has satisfied the first condition with a slope of 0 or more
	trials      uint64
}

// begin starts a search from f and the negative slope at step 0 with a first trial.
func (s *search) begin(f, slope, step float64) {
	at := end{0, f, slope}
	*s = search{
		start: at, best: at, other: at, step: step, most: step + float64(reachMost*step),
		width: longest, widthBefore: 2 * longest,
	}
}

// next takes the function and the slope at the trial.
func (s *search) next(f, slope float64) verdict {
	s.trials++
	if !finite(f) || !finite(slope) {
		return s.retreat()
	}
	here := end{s.step, f, slope}
	enough := s.start.f + float64(here.step*s.slope())
	if f <= enough && slope >= 0 {
		s.settled = true
	}
	switch {
	case f <= enough && math.Abs(slope) <= flatness*-s.start.slope:
		return accepted
	case s.trials == mostTrials:
		return failed
	case s.stuck(), s.step == longest && f <= enough && slope <= s.slope():
		if f < s.start.f {
			return accepted
		}
		return failed
	}
	s.narrow(here, enough)
	return searching
}

// slope is that of the line below which the function must lie.
func (s *search) slope() float64 { return float64(decrease * s.start.slope) }

// stuck reports whether the bracket is too narrow for another trial.
func (s *search) stuck() bool {
	return s.bracketed && (s.step <= s.least || s.step >= s.most || s.most-s.least <= narrow*s.most)
}

// retreat goes back from a step at which the function is not finite, to the middle between
// the best step and this one.
func (s *search) retreat() verdict {
	if s.trials == mostTrials {
		return failed
	}
	s.most = s.step
	s.step = s.best.step + float64(0.5*(s.step-s.best.step))
	return searching
}

// narrow moves the bracket's ends and chooses the next trial.
func (s *search) narrow(here end, enough float64) {
	if !s.settled && here.f <= s.best.f && here.f > enough {
		s.lowered(here)
	} else {
		s.advance(here)
	}
	if s.bracketed {
		s.halve()
		s.least, s.most = min(s.best.step, s.other.step), max(s.best.step, s.other.step)
	} else {
		change := s.step - s.best.step
		s.least, s.most = s.step+float64(reachLeast*change), s.step+float64(reachMost*change)
	}
	s.step = min(max(s.step, 0), longest)
	if s.stuck() {
		s.step = s.best.step
	}
}

// lowered is advance for the function less the line of the first condition, which has a
// minimum where the function itself may not.
func (s *search) lowered(here end) {
	a := s.slope()
	for _, e := range []*end{&s.best, &s.other, &here} {
		e.f -= float64(e.step * a)
		e.slope -= a
	}
	s.advance(here)
	for _, e := range []*end{&s.best, &s.other} {
		e.f += float64(e.step * a)
		e.slope += a
	}
}

// halve takes the middle of a bracket that two trials have not made small enough.
func (s *search) halve() {
	if width := math.Abs(s.other.step - s.best.step); width >= shrink*s.widthBefore {
		s.step = s.best.step + float64(0.5*(s.other.step-s.best.step))
	}
	s.widthBefore = s.width
	s.width = math.Abs(s.other.step - s.best.step)
}

func finite(x float64) bool { return x-x == 0 }

// advance replaces an end of the bracket by the trial here and sets the next trial by
// interpolation: section 4 of Moré and Thuente 1994, whose four cases these are.
func (s *search) advance(here end) {
	best := s.best
	opposite := here.slope*math.Copysign(1, best.slope) < 0
	switch {
	case here.f > best.f:
		s.step = betweenHigher(best, here)
		s.bracketed = true
	case opposite:
		s.step = betweenSlopes(best, here)
		s.bracketed = true
	case math.Abs(here.slope) < math.Abs(best.slope):
		s.step = s.flatter(best, here)
	case s.bracketed:
		s.step = cubicFrom(here, s.other)
	case here.step > best.step:
		s.step = s.most
	default:
		s.step = s.least
	}
	if here.f > best.f {
		s.other = here
		return
	}
	if opposite {
		s.other = best
	}
	s.best = here
}

// betweenHigher is for a trial with a higher value: the step of the cubic if it is closer to
// best than that of the parabola, else the middle of both.
func betweenHigher(best, here end) float64 {
	theta, gamma := cubic(best, here)
	if here.step < best.step {
		gamma = -gamma
	}
	p := (gamma - best.slope) + theta
	q := ((gamma - best.slope) + gamma) + here.slope
	width := here.step - best.step
	c := best.step + float64(p/q*width)
	parabola := best.step + float64(best.slope/((best.f-here.f)/width+best.slope)/2*width)
	if math.Abs(c-best.step) < math.Abs(parabola-best.step) {
		return c
	}
	return c + float64((parabola-c)/2)
}

// betweenSlopes is for a trial whose slope has the other sign: the step of the cubic or of the
// line through the slopes, whichever is farther from the trial.
func betweenSlopes(best, here end) float64 {
	c := cubicFrom(here, best)
	secant := here.step + float64(here.slope/(here.slope-best.slope)*(best.step-here.step))
	if math.Abs(c-here.step) > math.Abs(secant-here.step) {
		return c
	}
	return secant
}

// flatter is for a trial with a lower value and a flatter slope of the same sign: the cubic may
// have no minimum beyond it.
func (s *search) flatter(best, here end) float64 {
	theta, gamma := cubic(best, here)
	if here.step > best.step {
		gamma = -gamma
	}
	p := (gamma - here.slope) + theta
	q := (gamma + (best.slope - here.slope)) + gamma
	r := p / q
	var c float64
	switch {
	case r < 0 && gamma != 0:
		c = here.step + float64(r*(best.step-here.step))
	case here.step > best.step:
		c = s.most
	default:
		c = s.least
	}
	secant := here.step + float64(here.slope/(here.slope-best.slope)*(best.step-here.step))
	closer := math.Abs(c-here.step) < math.Abs(secant-here.step)
	next := secant
	if closer == s.bracketed { // with a bracket the closer one, without it the farther one
		next = c
	}
	if !s.bracketed {
		return min(max(next, s.least), s.most)
	}
	limit := here.step + float64(shrink*(s.other.step-here.step))
	if here.step > best.step {
		return min(limit, next)
	}
	return max(limit, next)
}

// cubicFrom returns the minimum of the cubic through here and other, seen from here.
func cubicFrom(here, other end) float64 {
	theta, gamma := cubic(other, here)
	if here.step > other.step {
		gamma = -gamma
	}
	p := (gamma - here.slope) + theta
	q := ((gamma - here.slope) + gamma) + other.slope
	return here.step + float64(p/q*(other.step-here.step))
}

// cubic returns the two numbers that the minimum of the cubic through two ends follows from;
// gamma is 0 or more.
func cubic(a, b end) (theta, gamma float64) {
	theta = float64(3*(a.f-b.f)/(b.step-a.step)) + a.slope + b.slope
	scale := max(math.Abs(theta), math.Abs(a.slope), math.Abs(b.slope))
	if scale == 0 {
		return theta, 0
	}
	t := theta / scale
	return theta, scale * math.Sqrt(max(0, float64(t*t)-float64(a.slope/scale*(b.slope/scale))))
}
