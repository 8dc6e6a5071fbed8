// Package measures compares predicted label distributions with true ones, by
// the ten measures that the label-distribution literature prints (Geng 2016,
// Table 1; Shen et al. 2017, Table 1), and averages them over rows and folds.
//
// In every formula d is the true distribution of a row, p the predicted one and
// sums run over labels, in order, in float64. Rows of float32 degrees are divided by their sums in float64 first, the
// true ones too: rounded to float32 they sum to 1 but for some 1e-8. A term 0/0 counts as 0. Where
// papers define a measure differently, the definition here is the one that
// reproduces their figures.
package measures

import (
	"math"

	"github.com/coppice-ldl/coppice/internal/num"
)

// MinPrediction is the smallest predicted share that KL divides by.
const MinPrediction = 1e-12

// KL is the Kullback-Leibler divergence Σ d ln(d/p), in nats. Terms with d = 0
// count 0; p is clamped from below at MinPrediction. Of two distributions it is not negative: a sum
// that rounding or the clamp takes below 0 is 0. Lower is better; 0 when p = d.
func KL(d, p []float64) float64 {
	return divergence(d, p, MinPrediction)
}

// divergence is KL with p clamped from below at least.
func divergence(d, p []float64, least float64) float64 {
	p = pair(d, p)
	sum := 0.0
	for j, x := range d {
		if x == 0 {
			continue
		}
		sum += float64(x * num.Log(x/max(p[j], least)))
	}
	return max(sum, 0)
}

// Euclidean is the distance sqrt(Σ (d-p)²), within [0, √2] for distributions.
// Lower is better.
func Euclidean(d, p []float64) float64 {
	p = pair(d, p)
	sum := 0.0
	for j, x := range d {
		y := x - p[j]
		sum += float64(y * y)
	}
	return math.Sqrt(sum)
}

// Sorensen is the distance Σ|d-p| / Σ(d+p), within [0, 1]; for distributions it
// is 1 - Intersection. Two rows of zeros have 0. Lower is better.
func Sorensen(d, p []float64) float64 {
	p = pair(d, p)
	diff, sum := 0.0, 0.0
	for j, x := range d {
		diff += math.Abs(x - p[j])
		sum += x + p[j]
	}
	return ratio(diff, sum)
}

// Chi2 is the squared χ² distance Σ (d-p)²/(d+p), within [0, 2] for
// distributions. Lower is better.
func Chi2(d, p []float64) float64 {
	p = pair(d, p)
	sum := 0.0
	for j, x := range d {
		y := x - p[j]
		sum += ratio(float64(y*y), x+p[j])
	}
	return sum
}

// Fidelity is the similarity Σ sqrt(d·p), within [0, 1] for distributions.
// Higher is better.
func Fidelity(d, p []float64) float64 {
	p = pair(d, p)
	sum := 0.0
	for j, x := range d {
		sum += math.Sqrt(x * p[j])
	}
	return sum
}

// Intersection is the similarity Σ min(d, p), within [0, 1] for distributions.
// Higher is better.
func Intersection(d, p []float64) float64 {
	p = pair(d, p)
	sum := 0.0
	for j, x := range d {
		sum += min(x, p[j])
	}
	return sum
}

// Chebyshev is the distance max|d-p|, within [0, 1] for distributions. Lower is
// better.
func Chebyshev(d, p []float64) float64 {
	p = pair(d, p)
	most := 0.0
	for j, x := range d {
		most = max(most, math.Abs(x-p[j]))
	}
	return most
}

// Clark is the distance sqrt(Σ (d-p)²/(d+p)²), within [0, √labels]. A label with
// exactly one of d and p zero counts 1, one with both zero counts 0. Lower is
// better.
func Clark(d, p []float64) float64 {
	p = pair(d, p)
	sum := 0.0
	for j, x := range d {
		y := ratio(x-p[j], x+p[j])
		sum += float64(y * y)
	}
	return math.Sqrt(sum)
}

// Canberra is the metric Σ |d-p|/(d+p), within [0, labels]. A label with exactly
// one of d and p zero counts 1, one with both zero counts 0. It is not squared,
// as Table 2 of the StructRF paper prints it: that would be Chi2. Lower is better.
func Canberra(d, p []float64) float64 {
	p = pair(d, p)
	sum := 0.0
	for j, x := range d {
		sum += ratio(math.Abs(x-p[j]), x+p[j])
	}
	return sum
}

// Cosine is the similarity Σ d·p / (sqrt(Σ d²) sqrt(Σ p²)), within [0, 1]; it is
// 0 where a row is all zeros. Higher is better.
func Cosine(d, p []float64) float64 {
	p = pair(d, p)
	dp, dd, pp := 0.0, 0.0, 0.0
	for j, x := range d {
		y := p[j]
		dp += float64(x * y)
		dd += float64(x * x)
		pp += float64(y * y)
	}
	return ratio(dp, math.Sqrt(dd)*math.Sqrt(pp))
}

// Spearman is the rank correlation, within [-1, 1]: Pearson's correlation of the ranks of d and
// of p, where equal degrees have the mean of their ranks. It is 0 where all degrees of a row are
// equal, which SciPy gives no number for. Higher is better.
func Spearman(d, p []float64) float64 {
	p = pair(d, p)
	dp, dd, pp := 0.0, 0.0, 0.0
	for j := range d {
		x, y := centred(d, j), centred(p, j)
		dp += float64(x * y)
		dd += float64(x * x)
		pp += float64(y * y)
	}
	return ratio(dp, math.Sqrt(dd)*math.Sqrt(pp))
}

// centred is twice the distance of the rank of v[j] in v from the mean rank: a whole number.
func centred(v []float64, j int) float64 {
	below, same := 0, 0
	for _, x := range v {
		switch {
		case x < v[j]:
			below++
		case x == v[j]:
			same++
		}
	}
	return float64(2*below + same - len(v))
}

// JensenShannon is the divergence (K-L(d, m) + K-L(p, m)) / 2 with m = (d + p)/2, in nats,
// within [0, ln 2] for distributions: Lin 1991, and the square of SciPy's distance. Terms 0 ln 0
// count 0. Lower is better.
func JensenShannon(d, p []float64) float64 {
	p = pair(d, p)
	sum := 0.0
	for j, x := range d {
		m := (x + p[j]) / 2
		sum += part(x, m) + part(p[j], m)
	}
	return max(sum, 0) / 2 // of equal distributions rounding may leave less than 0
}

// part is x ln(x/m), 0 for x = 0.
func part(x, m float64) float64 {
	if x == 0 {
		return 0
	}
	return float64(x * num.Log(x/m))
}

// ZeroOne is 0 if d and p have their maximum at the same label, else 1; of equal degrees the lowest
// label counts. Lower is better.
func ZeroOne(d, p []float64) float64 {
	if greatest(d) == greatest(pair(d, p)) {
		return 0
	}
	return 1
}

// ErrorProbability is 1 - d at the label with the largest p (of equal ones the lowest): the
// probability that this label is wrong, within [0, 1] (Geng 2016, section 4.1). Lower is better.
func ErrorProbability(d, p []float64) float64 {
	return 1 - d[greatest(pair(d, p))]
}

// greatest is the label of the greatest degree, of equal ones the lowest.
func greatest(v []float64) int {
	best := 0
	for j, x := range v {
		if x > v[best] {
			best = j
		}
	}
	return best
}

// ratio is a/b with 0/0 = 0.
func ratio(a, b float64) float64 {
	if a == 0 && b == 0 {
		return 0
	}
	return a / b
}

// pair returns p and panics if its length is not d's.
func pair(d, p []float64) []float64 {
	if len(d) != len(p) {
		panic("measures: two rows of different numbers of labels")
	}
	return p[:len(d)]
}
