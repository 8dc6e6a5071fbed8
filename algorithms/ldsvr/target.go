package ldsvr

import (
	"math"

	"github.com/coppice-ldl/coppice/internal/num"
)

// logits sets z to ln(d / (1 - d)), with d brought into clamp to 1 - clamp.
func logits(z []float64, label []float32, clamp float64) {
	for c, degree := range label {
		d := min(max(float64(degree), clamp), 1-clamp)
		z[c] = num.Log(d) - num.Log(1-d)
	}
}

// weigh sets e to z - f, and returns the loss L(u) of the row times its weight, and its weight in the least squares:
// a = L'(u)/u times C and the weight.
func (c *Config) weigh(e, z, f []float64, weight float64) (loss, a float64) {
	squares := 0.0
	for i := range e {
		e[i] = z[i] - f[i]
		squares += float64(e[i] * e[i])
	}
	u := math.Sqrt(squares)
	if !(u > c.Epsilon) {
		return 0, 0
	}
	over := u - c.Epsilon
	return float64(weight * float64(over*over)), weight * (float64(2*c.Cost*over) / u)
}

// shares sets p to σ(f), divided by the sum; p may be f. Sums of logarithms do not underflow.
func shares(p, f []float64) {
	most := math.Inf(-1)
	for i, x := range f {
		// ln σ(x), from the exponential that does not overflow
		if x > 0 {
			p[i] = -num.Log(1 + num.Exp(-x))
		} else {
			p[i] = x - num.Log(1+num.Exp(x))
		}
		most = max(most, p[i])
	}
	total := 0.0
	for i := range p {
		p[i] = num.Exp(p[i] - most)
		total += p[i]
	}
	for i := range p {
		p[i] /= total
	}
}

// leastDegree is the least degree of a prediction that K-L counts, as measures do.
const leastDegree = 1e-12

// divergence returns the K-L divergence of p from a label distribution.
func divergence(label []float32, p []float64) (kl float64) {
	for c, d := range label {
		if d > 0 {
			kl += float64(float64(d) * (num.Log(float64(d)) - num.Log(max(leastDegree, p[c]))))
		}
	}
	return kl
}
