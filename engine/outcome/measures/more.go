package measures

import (
	"math"

	"github.com/coppice-ldl/coppice/internal/num"
)

// CountMore is the number of measures of More.
const CountMore = 4

// More lists measures of distributions beside those of All, in the order of tables, sums and
// JSON. A job has them where its spec says `measures: all`.
var More = []Measure{
	{"spearman", "Spearman", "correlation of the ranks of d and p", true, Spearman},
	{"jensen_shannon", "Jensen-Shannon", "(K-L(d, m) + K-L(p, m)) / 2, m = (d+p)/2", false, JensenShannon},
	{"zero_one", "Zero-one loss", "0 if d and p have their maximum at the same label, else 1", false, ZeroOne},
	{"error_probability", "Error probability", "1 - d at the label with the largest p", false, ErrorProbability},
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
