package ldlf

import "github.com/coppice-ldl/coppice/internal/num"

// Adam's constants beside β1, which is the setting momentum: those of Kingma and
// Ba 2015.
const (
	adamBeta2   = 0.999
	adamEpsilon = 1e-8
)

// The updates are dense (accuracy.md, Conventions): every element decays and moves
// at every step.

// newAdamFactors returns the factors of update number t, counted from 1.
func newAdamFactors(rate, beta1, decay float64, t uint64) num.AdamFactors {
	a := num.AdamFactors{
		Rate: float32(rate), Decay: float32(decay), Beta1: float32(beta1), Beta2: adamBeta2, Epsilon: adamEpsilon,
		Correct1: float32(1 - power(beta1, t)), Correct2: float32(1 - power(adamBeta2, t)),
	}
	a.Rest1, a.Rest2 = 1-a.Beta1, 1-a.Beta2
	return a
}

// optimizer is one step of the optimiser of a job.
type optimizer struct {
	rate, momentum, decay float32
	adam                  num.AdamFactors
}

func (t *trainer) optimizer() optimizer {
	rate := learningRate(t.cfg, t.step)
	o := optimizer{rate: float32(rate), momentum: float32(t.cfg.Momentum), decay: float32(t.cfg.WeightDecay)}
	if t.second != nil {
		o.adam = newAdamFactors(rate, t.cfg.Momentum, t.cfg.WeightDecay, t.updates)
	}
	return o
}

// move applies the step to parameters x, with their gradient g, and their moments; second
// is nil but for Adam. It reports whether all of x is finite.
func (o *optimizer) move(x, first, second, g []float32) bool {
	if second != nil {
		return num.Adam(x, first, second, g, &o.adam)
	}
	return num.Momentum(x, first, g, o.rate, o.momentum, o.decay)
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

// learningRate returns the rate of the step that follows step steps: multiplied
// by learning_rate_decay every learning_rate_step steps.
func learningRate(c *Config, step uint64) float64 {
	if c.LearningRateStep == 0 {
		return c.LearningRate
	}
	return c.LearningRate * power(c.LearningRateDecay, step/uint64(c.LearningRateStep))
}
