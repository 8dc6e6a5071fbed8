package aabp

import (
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
	if c.Loss == lossSquared {
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
