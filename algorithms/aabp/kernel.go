package aabp

import (
	"math"

	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/softmax"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

func newKernel(c *Config, seed uint64, m *dataset.Manifest) *softmax.Kernel {
	k := &softmax.Kernel{Name: Name, Kernel: gradient.Kernel{
		Function: newFunction(c, seed, m), Outputs: m.Labels,
		Draws: gradient.Batches{Key: num.NewKey(seed, "aa-bp/batch"), Size: c.BatchSize},
	}}
	switch {
	case m.LabelType.Bounds != nil:
		k.NewLoss = func() gradient.Loss { return &boundedError{make([]float64, m.Labels), c.Loss == lossSquared} }
	case c.Loss == lossSquared:
		k.NewLoss = func() gradient.Loss { return &squaredError{make([]float64, m.Labels)} }
	}
	return k
}

// squaredError is ½ Σ_c (p_c - d_c)² of p = softmax(f), validated by the K-L divergence. p is working
// memory, a value for each label.
type squaredError struct{ p []float64 }

// Gradients implements gradient.Loss: with e = p - d, ∂/∂f_c = p_c (e_c - Σ_k p_k e_k).
func (l *squaredError) Gradients(df, f []float32, samples []gradient.Sample, _ *gradient.Values,
	losses []float64) []float64 {
	n := len(l.p)
	for i := range samples {
		d := samples[i].D
		softmax.Spread(l.p, f[i*n:(i+1)*n])
		loss, mean := 0.0, 0.0
		for c, p := range l.p {
			e := p - float64(d[c])
			loss += float64(e * e)
			mean += float64(p * e)
		}
		losses = append(losses, loss/2)
		for c, p := range l.p {
			df[i*n+c] = float32(p * (p - float64(d[c]) - mean))
		}
	}
	return losses
}

// Validation implements gradient.Loss.
func (l *squaredError) Validation(f []float32, x *gradient.Sample, _ *gradient.Values) float64 {
	softmax.Spread(l.p, f)
	return softmax.KL(x.D, l.p)
}

// logistic sets p to 1 / (1 + exp(-f_c)); for an output that is not a number, 1/2.
func logistic(p []float64, f []float32) {
	for c, x := range f {
		if x != x {
			x = 0
		}
		if y := num.Exp(-math.Abs(float64(x))); x < 0 {
			p[c] = y / (1 + y)
		} else {
			p[c] = 1 / (1 + y)
		}
	}
}

// boundedError is a loss of the logistic outputs p of targets t from 0 to 1. It is ½ Σ_c (p_c - t_c)² if squared, else
// the K-L divergence Σ_c t_c ln(t_c / p_c) + (1 - t_c) ln((1 - t_c) / (1 - p_c)). Validation has ½ Σ_c (p_c - t_c)².
// p is working memory, a value for each target.
type boundedError struct {
	p       []float64
	squared bool
}

// Gradients implements gradient.Loss: ∂/∂f_c = p_c - t_c of the divergence, and p_c (1 - p_c) (p_c - t_c) of the
// squared error.
func (l *boundedError) Gradients(df, f []float32, samples []gradient.Sample, _ *gradient.Values,
	losses []float64) []float64 {
	n := len(l.p)
	for i := range samples {
		t := samples[i].D
		logistic(l.p, f[i*n:(i+1)*n])
		if l.squared {
			losses = append(losses, l.squares(t))
		} else {
			losses = append(losses, l.divergence(t))
		}
		for c, p := range l.p {
			e := p - float64(t[c])
			if l.squared {
				e *= p * (1 - p)
			}
			df[i*n+c] = float32(e)
		}
	}
	return losses
}

// squares returns ½ Σ_c (p_c - t_c)².
func (l *boundedError) squares(t []float32) (sum float64) {
	for c, p := range l.p {
		e := p - float64(t[c])
		sum += float64(e * e)
	}
	return sum / 2
}

// divergence returns the K-L divergence, with probabilities of at least 1e-12.
func (l *boundedError) divergence(t []float32) (sum float64) {
	for c, p := range l.p {
		both := [2]float32{t[c], 1 - t[c]}
		sum += softmax.KL(both[:], []float64{p, 1 - p})
	}
	return sum
}

// Validation implements gradient.Loss.
func (l *boundedError) Validation(f []float32, x *gradient.Sample, _ *gradient.Values) float64 {
	logistic(l.p, f)
	return l.squares(x.D)
}
