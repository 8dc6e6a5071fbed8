package enhance

import (
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Recovery says how near distributions p are to the true distributions d, as means over the samples.
type Recovery struct {
	Chebyshev    float64 `json:"chebyshev"`
	Clark        float64 `json:"clark"`
	Canberra     float64 `json:"canberra"`
	KL           float64 `json:"kl"`         // Σ d ln(d/p), p at least 1e-12
	ReverseKL    float64 `json:"reverse_kl"` // Σ p ln(p/d) over the labels with d above 0
	Cosine       float64 `json:"cosine"`
	Intersection float64 `json:"intersection"`
}

// Recovered compares distributions with the true distributions, both by sample, then by label.
func Recovered(truth, enhanced []float32, labels int) (r Recovery) {
	p, d := make([]float64, labels), make([]float64, labels)
	n := float64(len(truth) / labels)
	for at := 0; at < len(truth); at += labels {
		for c := range labels {
			d[c], p[c] = float64(truth[at+c]), float64(enhanced[at+c])
		}
		r.Chebyshev += measures.Chebyshev(d, p) / n
		r.Clark += measures.Clark(d, p) / n
		r.Canberra += measures.Canberra(d, p) / n
		r.KL += measures.KL(d, p) / n
		r.ReverseKL += reverseKL(d, p) / n
		r.Cosine += measures.Cosine(d, p) / n
		r.Intersection += measures.Intersection(d, p) / n
	}
	return r
}

// reverseKL returns Σ p ln(p/d) over the labels with d above 0, as published tables of label enhancement do.
func reverseKL(d, p []float64) (sum float64) {
	for c, x := range p {
		if x > 0 && d[c] > 0 {
			sum += float64(x * num.Log(x/d[c]))
		}
	}
	return sum
}

// Trivial returns the distributions that logical labels give without an enhancement.
func Trivial(logical []byte, labels int, how string) []float32 {
	p, scores := make([]float32, len(logical)), make([]float64, labels)
	for at := 0; at < len(logical); at += labels {
		for c := range labels {
			scores[c] = float64(logical[at+c])
		}
		normalise(p[at:at+labels], scores, logical[at:at+labels], how)
	}
	return p
}
