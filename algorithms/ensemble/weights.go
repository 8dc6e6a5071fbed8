package ensemble

import (
	"slices"

	"github.com/coppice-ldl/coppice/internal/num"
)

// The bounds of the iteration that fits weights.
const (
	mostPasses   = 500   // over the rows
	greatestGap  = 1e-9  // nats
	leastDegree  = 1e-12 // predicted degrees are at least this
	greatestStep = 1 << 20
)

// leastGain is the share by which a member lowers the divergence at least, else it has no weight.
const leastGain = 1e-3

// sample is the rows that weights are fitted to.
type sample struct {
	members, labels int
	truth           []float32 // rows×labels
	predicted       []float32 // rows×members×labels, at least leastDegree
	weights         []float64 // of the rows; nil: each is 1
	total           float64   // of the weights, or the number of rows
}

func (s *sample) rows() int { return len(s.truth) / s.labels }

// add appends a row: its true degrees, and what each member predicts of them. The weight is 1 unless rows have weights.
func (s *sample) add(truth []float32, predicted [][]float32, weight float64) {
	s.truth = append(s.truth, truth...)
	s.total += weight
	for _, p := range predicted {
		for _, degree := range p {
			s.predicted = append(s.predicted, max(degree, leastDegree))
		}
	}
}

// choose returns the weights of fit, without members that hardly count: the one of the least weight
// has weight 0 where the others reach a divergence that is above by less than a share of leastGain,
// and so on. Such a weight is noise, and each member costs its size and its time in predictions.
func (s *sample) choose() []float64 {
	w := s.fit(uniform(s.members))
	for f := s.divergence(w); ; {
		less := without(w)
		if less == nil {
			return w
		}
		if less = s.fit(less); s.divergence(less) > f*(1+leastGain) {
			return w
		}
		w = less
	}
}

// without returns equal weights of the members that have one, but for the least; nil: only one has.
func without(w []float64) []float64 {
	least, count := -1, 0
	for m, weight := range w {
		if weight > 0 {
			if count++; least < 0 || weight < w[least] {
				least = m
			}
		}
	}
	if count < 2 {
		return nil
	}
	less := make([]float64, len(w))
	for m, weight := range w {
		if weight > 0 && m != least {
			less[m] = 1 / float64(count-1)
		}
	}
	return less
}

// fit returns the weights w on the simplex that minimise f(w) = (1/N) Σ_i K-L(d_i ‖ Σ_m w_m p_im),
// which is convex, over the members with a weight in w. If rows have weights, all means over rows are
// weighted. From these weights, an iteration is
//
//	w_m ← w_m g_m^η / Σ_m' w_m' g_m'^η,  g_m = (1/N) Σ_i Σ_c d_ic p_imc / Σ_m' w_m' p_im'c = -∂f/∂w_m
//
// With η = 1 this is the shape of Eq. 12 of Shen et al. 2017, which never raises f and is slow
// where members predict nearly the same; so η doubles as long as f falls, and falls back to a
// quarter where f would rise. Since f is convex, f(w) is above its minimum by
// max_m g_m - Σ_m w_m g_m at most (the sum is that of degrees, 1 but for rounding): fit ends once
// that is below greatestGap, f has stopped falling, or mostPasses are over.
func (s *sample) fit(w []float64) []float64 {
	g := make([]float64, s.members)
	next, after := make([]float64, s.members), make([]float64, s.members)
	f, step := s.evaluate(g, w), 1.0
	for range mostPasses {
		if steepest(w, g)-mixed(w, g) < greatestGap {
			break
		}
		for m := range w {
			next[m] = float64(w[m] * num.Exp(float64(step*num.Log(g[m]))))
		}
		normalise(next)
		lower := s.evaluate(after, next)
		switch {
		case lower < f:
			f, step = lower, min(2*step, greatestStep)
			w, g, next, after = next, after, w, g
		case step == 1:
			return w
		default:
			step = max(1, step/4)
		}
	}
	return w
}

// steepest returns max_m g_m over the members with a weight.
func steepest(w, g []float64) (most float64) {
	for m, weight := range w {
		if weight > 0 {
			most = max(most, g[m])
		}
	}
	return most
}

// evaluate returns f and sets g at w.
func (s *sample) evaluate(g, w []float64) (f float64) {
	clear(g)
	v := make([]float64, s.members) // what the members predict of a degree
	for i := range s.rows() {
		p := s.predicted[i*s.members*s.labels:][:s.members*s.labels]
		for c, degree := range s.truth[i*s.labels:][:s.labels] {
			if degree == 0 {
				continue
			}
			for m := range v {
				v[m] = float64(p[m*s.labels+c])
			}
			d, mix := float64(degree), mixed(w, v)
			weighted := d
			if s.weights != nil {
				weighted = float64(s.weights[i] * d)
			}
			f += float64(weighted * (num.Log(d) - num.Log(mix)))
			for m := range g {
				g[m] += float64(weighted / mix * v[m])
			}
		}
	}
	for m := range g {
		g[m] /= s.total
	}
	return f / s.total
}

// mixed returns Σ_m w_m v_m.
func mixed(w, v []float64) (sum float64) {
	for m, weight := range w {
		sum += float64(weight * v[m])
	}
	return sum
}

// divergence returns f(w), in nats.
func (s *sample) divergence(w []float64) float64 { return s.evaluate(make([]float64, len(w)), w) }

// normalise has the weights sum to 1.
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

// least returns the place of the least value, the first of several.
func least(values []float64) int {
	at := 0
	for i, v := range values {
		if v < values[at] {
			at = i
		}
	}
	return at
}

// only returns the weights of n members if member m has all of the weight.
func only(m, n int) []float64 {
	w := make([]float64, n)
	w[m] = 1
	return w
}
