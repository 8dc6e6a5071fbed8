package lbfgs

import "math"

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
