package lbfgs

import "math"

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
