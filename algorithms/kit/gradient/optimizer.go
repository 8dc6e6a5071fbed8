package gradient

import (
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Adam's constants beside β1, which is Rule.Momentum: those of Kingma and
// Ba 2015.
const (
	adamBeta2   = 0.999
	adamEpsilon = 1e-8
)

// Rule says how an optimiser moves Θ: SGD with momentum, or Adam.
type Rule struct {
	Adam      bool
	Rate      float64 // learning rate of the first step
	RateStep  uint64  // steps after which the rate is multiplied by RateDecay; 0: never
	RateDecay float64
	Warmup    uint64  // steps in which the rate grows evenly from near 0; 0: none
	Cosine    uint64  // steps until which the rate falls to 0 as half a cosine does; 0: it does not
	Momentum  float64 // of SGD; β1 of Adam
	Decay     float64 // the gradient gains Decay·Θ
	// SpareBiases keeps the tensors of biases (Layer.Bias) from decay.
	SpareBiases bool
	// Factors multiply the rate of tensors, by name; 1 where there is none. With 0 a tensor keeps
	// its first values, and its moments rest.
	Factors map[string]float64
}

// rate returns the learning rate of the step that follows step steps.
func (r *Rule) rate(step uint64) float64 {
	rate := r.Rate
	if r.RateStep > 0 {
		rate *= power(r.RateDecay, step/r.RateStep)
	}
	if r.Cosine > 0 {
		_, cosine := num.SinCos2Pi(float64(min(step, r.Cosine)) / float64(2*r.Cosine))
		rate *= (1 + cosine) / 2
	}
	if step < r.Warmup {
		rate *= float64(step+1) / float64(r.Warmup)
	}
	return rate
}

// power returns x^n by repeated squaring.
func power(x float64, n uint64) float64 {
	y := 1.0
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			y *= x
		}
		x *= x
	}
	return y
}

// adamFactors returns the factors of update number t, counted from 1.
func (r *Rule) adamFactors(rate float64, t uint64) num.AdamFactors {
	a := num.AdamFactors{
		Rate: float32(rate), Decay: float32(r.Decay), Beta1: float32(r.Momentum), Beta2: adamBeta2, Epsilon: adamEpsilon,
		Correct1: float32(1 - power(r.Momentum, t)), Correct2: float32(1 - power(adamBeta2, t)),
	}
	a.Rest1, a.Rest2 = 1-a.Beta1, 1-a.Beta2
	return a
}

// PartValues is about how many parameters an Optimizer moves at once: their gradient
// is 16 KiB, which the first level of the cache keeps.
const PartValues = 1 << 12

// Optimizer moves the parameters of a function. The moves are dense: every element
// decays and moves at every step (accuracy.md, Conventions).
type Optimizer struct {
	Rule
	First   []float32 // SGD's v, Adam's m
	Second  []float32 // Adam's v; nil with SGD
	Updates uint64    // moves since the beginning: Adam's t
	g       []float32 // the gradient of a part of Θ
	spans   []span    // Θ from its beginning to its end
	kept    kept
}

// span is consecutive parameters that move alike.
type span struct {
	to     int // where it ends in Θ; it begins where the one before ends
	decays bool
	factor float64 // of the rate
}

// NewOptimizer returns an optimiser of f's parameters.
func NewOptimizer(r Rule, f Function) *Optimizer {
	o := &Optimizer{Rule: r}
	n := 0
	for _, l := range f.Layout() {
		n += l.Size()
		factor, ok := r.Factors[l.Name]
		if !ok {
			factor = 1
		}
		next := span{n, !(l.Bias && r.SpareBiases), factor}
		if k := len(o.spans); k > 0 && o.spans[k-1].decays == next.decays && o.spans[k-1].factor == factor {
			o.spans[k-1].to = n
		} else {
			o.spans = append(o.spans, next)
		}
	}
	o.First = make([]float32, n)
	if r.Adam {
		o.Second = make([]float32, n)
	}
	o.g = make([]float32, min(n, max(1, PartValues/f.Stride())*f.Stride()))
	return o
}

// Reset forgets the moments, for training that begins again.
func (o *Optimizer) Reset() {
	o.Updates = 0
	clear(o.First)
	clear(o.Second)
}

// State lists the fields of a training state.
func (o *Optimizer) State(l *fields.List) {
	l.Uint64(&o.Updates)
	l.Float32s(o.First, o.Second)
}

// move is one step of the optimiser.
type move struct {
	rate, momentum, decay float32
	adam                  num.AdamFactors
}

func (o *Optimizer) move(step uint64) move {
	rate := o.rate(step)
	m := move{rate: float32(rate), momentum: float32(o.Momentum), decay: float32(o.Decay)}
	if o.Adam {
		m.adam = o.adamFactors(rate, o.Updates)
	}
	return m
}

// of returns the step of a span.
func (m *move) of(p *span) move {
	step := *m
	if !p.decays {
		step.decay, step.adam.Decay = 0, 0
	}
	if p.factor != 1 {
		step.rate, step.adam.Rate = step.rate*float32(p.factor), step.adam.Rate*float32(p.factor)
	}
	return step
}

// apply moves parameters x, with their gradient g, and their moments; second
// is nil but for Adam. It reports whether all of x is finite.
func (m *move) apply(x, first, second, g []float32) bool {
	if second != nil {
		return num.Adam(x, first, second, g, &m.adam)
	}
	return num.Momentum(x, first, g, m.rate, m.momentum, m.decay)
}

// Move takes the step that follows step steps: theta moves along share times the gradient
// that sum holds of f's loss with inputs scaled by x. It reports whether all of theta is
// finite. Θ moves a part after the other, so that the gradient of each stays in the
// processor's cache.
func (o *Optimizer) Move(theta []float32, f Function, sum *round.Partial, share float32, x *scaling.Values,
	step uint64) (finite bool) {
	o.Updates++
	m := o.move(step)
	from, finite := o.moveRows(&m, theta, f, sum, share, x)
	for from < len(theta) {
		to := min(from+len(o.g), len(theta))
		g := o.g[:to-from]
		f.Gradient(g, from, sum, share, x)
		if !o.applySpans(&m, theta, g, from) {
			finite = false
		}
		from = to
	}
	return finite
}

// applySpans moves the parameters from from on that have the gradient g, span by span.
func (o *Optimizer) applySpans(m *move, theta, g []float32, from int) (finite bool) {
	finite = true
	for i := range o.spans {
		p := &o.spans[i]
		to := min(p.to, from+len(g))
		if to <= from {
			continue
		}
		if step := m.of(p); p.factor != 0 && !step.apply(theta[from:to], o.First[from:to], part(o.Second, from, to),
			g[:to-from]) {
			finite = false
		}
		from, g = to, g[to-from:]
	}
	return finite
}

// Penalty returns Decay/2·Σ Θ² over the parameters that decay: what the optimiser minimises
// beside the mean loss.
func (o *Optimizer) Penalty(theta []float32) float64 {
	sum, from := 0.0, 0
	for _, p := range o.spans {
		if p.decays {
			for _, x := range theta[from:p.to] {
				sum += float64(float64(x) * float64(x))
			}
		}
		from = p.to
	}
	return o.Decay / 2 * sum
}

// moveRows is Move of the first n parameters, of whose gradient few rows are there.
func (o *Optimizer) moveRows(m *move, theta []float32, f Function, sum *round.Partial, share float32,
	x *scaling.Values) (n int, finite bool) {
	if n = f.GradientRows(x); n == 0 || o.Adam {
		return 0, true
	}
	p := &o.spans[0] // rows are of the first tensor, and have no biases
	if p.factor == 0 {
		return n, true
	}
	step := m.of(p)
	return n, num.MomentumRows(theta[:n], o.First[:n], sum.Values, sum.Index, sum.Width, share, step.rate, step.momentum,
		step.decay)
}

// part returns v[from:to], of nil nil.
func part(v []float32, from, to int) []float32 {
	if v == nil {
		return nil
	}
	return v[from:to]
}

// kept has what must not change in a step: parameters of idle output units, and their moments.
type kept struct {
	units                []int // that are idle
	theta, first, second []float32
}

// MoveBut is Move in which the parameters of idle output units, and their moments, stay as they
// are; idle has a value for each unit.
func (o *Optimizer) MoveBut(idle []bool, theta []float32, f Function, sum *round.Partial, share float32,
	x *scaling.Values, step uint64) (finite bool) {
	from, units := f.OutputsFrom()
	k := &o.kept
	k.units = k.units[:0]
	for unit, is := range idle {
		if is {
			k.units = append(k.units, unit)
		}
	}
	k.theta, k.first = k.take(k.theta, theta[from:], units), k.take(k.first, o.First[from:], units)
	if o.Second != nil {
		k.second = k.take(k.second, o.Second[from:], units)
	}
	finite = o.Move(theta, f, sum, share, x, step)
	k.putBack(theta[from:], k.theta, units)
	k.putBack(o.First[from:], k.first, units)
	if o.Second != nil {
		k.putBack(o.Second[from:], k.second, units)
	}
	return finite
}

// take returns what v, rows of so many units, has of the idle ones, in the memory of dst.
func (k *kept) take(dst, v []float32, units int) []float32 {
	dst = dst[:0]
	for row := 0; row < len(v); row += units {
		for _, unit := range k.units {
			dst = append(dst, v[row+unit])
		}
	}
	return dst
}

// putBack sets the idle units of v to what take returned.
func (k *kept) putBack(v, before []float32, units int) {
	for row := 0; row < len(v); row += units {
		for i, unit := range k.units {
			v[row+unit] = before[i]
		}
		before = before[len(k.units):]
	}
}
