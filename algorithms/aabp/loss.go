package aabp

import (
	"math"

	"github.com/coppice-ldl/coppice/algorithms/gradient"
	"github.com/coppice-ldl/coppice/internal/num"
)

// softmax sets p to exp(f_c) / Σ exp(f_c). Outputs beyond float32, which a model that was not
// trained here may have, count as the greatest float32.
func softmax(p []float64, f []float32) {
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

// kl returns the K-L divergence Σ_c d_c ln(d_c / p_c) in nats, with p clamped at floor; d_c = 0
// counts 0.
func kl(d []float32, p []float64) (sum float64) {
	for c, dc := range d {
		if dc > 0 {
			sum += float64(float64(dc) * num.Log(float64(dc)/max(p[c], floor)))
		}
	}
	return sum
}

// divergence is the K-L divergence of softmax(f): see gradient.Loss. p is working memory, a
// value for each label.
type divergence struct{ p []float64 }

// Gradients implements gradient.Loss: ∂/∂f_c = p_c - d_c.
func (l *divergence) Gradients(df, f []float32, samples []gradient.Sample, _ *gradient.Values, losses []float64) []float64 {
	n := len(l.p)
	for i := range samples {
		d := samples[i].D
		softmax(l.p, f[i*n:(i+1)*n])
		losses = append(losses, kl(d, l.p))
		for c, p := range l.p {
			df[i*n+c] = float32(p - float64(d[c]))
		}
	}
	return losses
}

// Validation implements gradient.Loss.
func (l *divergence) Validation(f []float32, x *gradient.Sample, _ *gradient.Values) float64 {
	softmax(l.p, f)
	return kl(x.D, l.p)
}

// squaredError is ½ Σ_c (p_c - d_c)² of p = softmax(f), validated by the K-L divergence.
type squaredError struct{ p []float64 }

// Gradients implements gradient.Loss: with e = p - d, ∂/∂f_c = p_c (e_c - Σ_k p_k e_k).
func (l *squaredError) Gradients(df, f []float32, samples []gradient.Sample, _ *gradient.Values, losses []float64) []float64 {
	n := len(l.p)
	for i := range samples {
		d := samples[i].D
		softmax(l.p, f[i*n:(i+1)*n])
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
	softmax(l.p, f)
	return kl(x.D, l.p)
}
