package ldlf

import (
	"math"
)

// Adam's constants beside β1, which is the setting momentum: those of Kingma and
// Ba 2015.
const (
	adamBeta2   = 0.999
	adamEpsilon = 1e-8
)

// The updates are dense (accuracy.md, Conventions): every element decays and moves
// at every step. They are plain float32 arithmetic in which nothing fuses.

// sgd takes one step of gradient descent with momentum:
//
//	g += decay·Θ    v = momentum·v + g    Θ -= rate·v
//
// It reports false when an element of Θ is no longer finite.
func sgd(theta, v, g []float32, rate, momentum, decay float32) bool {
	v, g = v[:len(theta)], g[:len(theta)]
	finite := true
	for i, x := range theta {
		d := g[i] + float32(decay*x)
		m := float32(momentum*v[i]) + d
		x -= float32(rate * m)
		v[i], theta[i] = m, x
		finite = finite && x-x == 0
	}
	return finite
}

// adamRates are Adam's factors of one step, with the bias corrections folded in.
type adamRates struct {
	rate, beta1, beta2, decay float32
	correct1, correct2        float32 // 1 - β^t
}

// newAdamRates returns the factors of update number t, counted from 1.
func newAdamRates(rate, beta1, decay float64, t uint64) adamRates {
	return adamRates{
		rate: float32(rate), beta1: float32(beta1), beta2: adamBeta2, decay: float32(decay),
		correct1: float32(1 - power(beta1, t)), correct2: float32(1 - power(adamBeta2, t)),
	}
}

// adam takes one step of Adam:
//
//	g += decay·Θ    m = β1·m + (1-β1)·g    v = β2·v + (1-β2)·g²
//	Θ -= rate·(m/(1-β1^t)) / (sqrt(v/(1-β2^t)) + ε)
//
// It reports false when an element of Θ is no longer finite.
func adam(theta, m, v, g []float32, a adamRates) bool {
	m, v, g = m[:len(theta)], v[:len(theta)], g[:len(theta)]
	finite := true
	for i, x := range theta {
		d := g[i] + float32(a.decay*x)
		m[i] = float32(a.beta1*m[i]) + float32((1-a.beta1)*d)
		v[i] = float32(a.beta2*v[i]) + float32((1-a.beta2)*float32(d*d))
		root := float32(math.Sqrt(float64(v[i] / a.correct2)))
		x -= float32(float32(a.rate*(m[i]/a.correct1)) / (root + adamEpsilon))
		theta[i] = x
		finite = finite && x-x == 0
	}
	return finite
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
