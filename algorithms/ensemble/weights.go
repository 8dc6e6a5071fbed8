package ensemble

import (
	"slices"

	"github.com/coppice-ldl/coppice/internal/num"
)

// The bounds of the iteration that fits weights.
const (
	mostIterations = 500
	leastChange    = 1e-9
	leastDegree    = 1e-12 // predicted degrees are at least this
)

// sample is the rows that weights are fitted to.
type sample struct {
	members, labels int
	truth           []float32 // rows×labels
	predicted       []float32 // rows×members×labels, at least leastDegree
}

func (s *sample) rows() int { return len(s.truth) / s.labels }

// add appends a row: its true degrees, and what each member predicts of them.
func (s *sample) add(truth []float32, predicted [][]float32) {
	s.truth = append(s.truth, truth...)
	for _, p := range predicted {
		for _, degree := range p {
			s.predicted = append(s.predicted, max(degree, leastDegree))
		}
	}
}

// fit returns the weights w on the simplex that minimise Σ_i K-L(d_i ‖ Σ_m w_m p_im), by
//
//	w_m ← (1/N) Σ_i Σ_c d_ic w_m p_imc / Σ_m' w_m' p_im'c
//
// from 1/M, the shape of Eq. 12 of Shen et al. 2017: the divergence never rises.
func (s *sample) fit() []float64 {
	w, next := uniform(s.members), make([]float64, s.members)
	for range mostIterations {
		s.step(next, w)
		change := 0.0
		for m := range w {
			change = max(change, next[m]-w[m], w[m]-next[m])
		}
		w, next = next, w
		if change < leastChange {
			break
		}
	}
	normalise(w)
	return w
}

// step sets next to one iteration from w.
func (s *sample) step(next, w []float64) {
	clear(next)
	for i := range s.rows() {
		p := s.predicted[i*s.members*s.labels:][:s.members*s.labels]
		for c, degree := range s.truth[i*s.labels:][:s.labels] {
			if degree == 0 {
				continue
			}
			share := float64(degree) / mixed(w, p[c:], s.labels)
			for m := range next {
				next[m] += float64(share * float64(p[m*s.labels+c]))
			}
		}
	}
	n := float64(s.rows())
	for m := range next {
		next[m] = float64(w[m]*next[m]) / n
	}
}

// mixed returns Σ_m w_m p_m, of every width-th value of p.
func mixed(w []float64, p []float32, width int) (sum float64) {
	for m, weight := range w {
		sum += float64(weight * float64(p[m*width]))
	}
	return sum
}

// divergence returns the mean over rows of K-L(d ‖ Σ_m w_m p_m), in nats.
func (s *sample) divergence(w []float64) (sum float64) {
	for i := range s.rows() {
		p := s.predicted[i*s.members*s.labels:][:s.members*s.labels]
		for c, degree := range s.truth[i*s.labels:][:s.labels] {
			if d := float64(degree); d > 0 {
				sum += float64(d * (num.Log(d) - num.Log(mixed(w, p[c:], s.labels))))
			}
		}
	}
	return sum / float64(s.rows())
}

// normalise has the weights sum to 1: degrees, as float32, do so only nearly.
func normalise(w []float64) {
	sum := 0.0
	for _, v := range w {
		sum += v
	}
	for m := range w {
		w[m] /= sum
	}
}

// onSimplex reports whether weights are not negative and sum to 1.
func onSimplex(w []float64) bool {
	sum := 0.0
	for _, v := range w {
		if !(v >= 0 && v <= 1+1e-9) {
			return false
		}
		sum += v
	}
	return sum > 1-1e-9 && sum < 1+1e-9
}

func uniform(n int) []float64 { return slices.Repeat([]float64{1 / float64(n)}, n) }

// only returns weights of n members of which m has all.
func only(m, n int) []float64 {
	w := make([]float64, n)
	w[m] = 1
	return w
}
