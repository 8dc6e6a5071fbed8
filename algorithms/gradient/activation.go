package gradient

import "github.com/coppice-ldl/coppice/internal/num"

// activation is what the hidden units of a network make of their sums.
type activation interface {
	// tensor names W₁ in model files, from which the activation is known again.
	tensor() string
	// apply sets each element of h to the activation of it, and slope to the derivative there.
	apply(h, slope []float32)
}

// relu is the rectifier max(0, z), whose derivative at 0 is 0.
type relu struct{}

func (relu) tensor() string { return "hidden.relu" }

func (relu) apply(h, slope []float32) {
	slope = slope[:len(h)]
	for i, z := range h {
		slope[i] = 1
		if z <= 0 {
			h[i], slope[i] = 0, 0
		}
	}
}

// logistic is σ(z) = 1/(1 + exp(-z)).
type logistic struct{}

func (logistic) tensor() string { return "hidden.logistic" }

func (logistic) apply(h, slope []float32) {
	num.SigmoidPairs(h, slope, h)
	num.Mul32(slope, h)
}
