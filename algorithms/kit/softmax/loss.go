package softmax

import (
	"math"

	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Spread sets p to exp(f_c) / Σ exp(f_c). Outputs beyond float32, which a model that was not
// trained here may have, count as the greatest float32.
func Spread(p []float64, f []float32) {
	most := float64(-math.MaxFloat32)
	for c, x := range f {
		y := float64(x)
		if !(y <= math.MaxFloat32) { // not a number as well
			y = math.MaxFloat32
		}
		p[c] = max(y, -math.MaxFloat32)
		most = max(most, p[c])
	}
	sum := 0.0
	for c, y := range p {
		p[c] = num.Exp(y - most)
		sum += p[c]
	}
	for c := range p {
		p[c] /= sum
	}
}

// floor bounds predictions from below in losses, as the measures do.
const floor = 1e-12

// KL returns the K-L divergence Σ_c d_c ln(d_c / p_c) in nats, with p clamped at floor; d_c = 0
// counts 0.
func KL(d []float32, p []float64) (sum float64) {
	for c, dc := range d {
		if dc > 0 {
			sum += float64(float64(dc) * num.Log(float64(dc)/max(p[c], floor)))
		}
	}
	return sum
}

// Divergence is the K-L divergence of the softmax of f: see gradient.Loss. P is working memory, a
// value for each label.
type Divergence struct{ P []float64 }

// Gradients implements gradient.Loss: ∂/∂f_c = p_c - d_c.
func (l *Divergence) Gradients(df, f []float32, samples []gradient.Sample, _ *gradient.Values, losses []float64) []float64 {
	n := len(l.P)
	for i := range samples {
		d := samples[i].D
		Spread(l.P, f[i*n:(i+1)*n])
		losses = append(losses, KL(d, l.P))
		for c, p := range l.P {
			df[i*n+c] = float32(p - float64(d[c]))
		}
	}
	return losses
}

// Validation implements gradient.Loss.
func (l *Divergence) Validation(f []float32, x *gradient.Sample, _ *gradient.Values) float64 {
	Spread(l.P, f)
	return KL(x.D, l.P)
}
