// Package statistics compares models by their measures on the same folds or datasets: paired
// tests, ranks, and the corrections for several comparisons. Inputs are small lists (folds,
// datasets), in float64; distributions come from gonum.
//
// P-values are two-sided. They go into reports and reach no digest: the last bits of a p-value
// may differ between processors.
package statistics

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
)

// Test is the outcome of a test.
type Test struct {
	Statistic float64
	P         float64 // NaN: too few values for this test
}

// Moments are the mean of n values and their sample standard deviation, which divides by
// n - 1 (NaN of fewer than two values).
type Moments struct{ Mean, Deviation float64 }

// MomentsOf returns the moments of values, in whatever order they stand, and exactly 0 as the deviation
// of equal values. The mean of values with both signs is exactly 0 if it differs from 0 by their rounding at most.
func MomentsOf(values []float64) Moments {
	n := float64(len(values))
	if n == 0 {
		return Moments{math.NaN(), math.NaN()}
	}
	// A quotient of equal values may round to another number.
	least, most := slices.Min(values), slices.Max(values)
	mean := max(least, min(Sum(values)/n, most))
	if least < 0 && most > 0 && within(mean, 0, max(-least, most)) {
		mean = 0
	}
	if n == 1 {
		return Moments{mean, math.NaN()}
	}
	squares := make([]float64, len(values))
	for i, v := range values {
		squares[i] = float64((v - mean) * (v - mean))
	}
	return Moments{mean, math.Sqrt(Sum(squares) / (n - 1))}
}

// PairedT is Student's paired t-test: t = mean / (deviation / sqrt(n)) of the n differences d,
// with n - 1 degrees of freedom. Over folds its p is too small, as the training rows of any
// two folds overlap: see CorrectedT. Differences that are all 0 have P = 1, others that are
// all equal have P = 0. At least two differences are needed.
func PairedT(d []float64) Test {
	return tTest(d, 1/float64(len(d)))
}

// CorrectedT is the corrected resampled t-test of Nadeau and Bengio 2003: PairedT with the
// variance deviation² (1/n + ratio) instead of deviation²/n. ratio is the number of test samples divided by the number
// of training samples: 1/9 for ten folds.
func CorrectedT(d []float64, ratio float64) Test {
	return tTest(d, 1/float64(len(d))+ratio)
}

// tTest is a t-test in which the mean has the variance deviation² times factor.
func tTest(d []float64, factor float64) Test {
	m := MomentsOf(d)
	switch {
	case len(d) < 2:
		return Test{math.NaN(), math.NaN()}
	case m.Mean == 0 && m.Deviation == 0:
		return Test{0, 1}
	}
	t := m.Mean / (m.Deviation * math.Sqrt(factor))
	if math.IsInf(t, 0) {
		return Test{t, 0}
	}
	return Test{t, 2 * studentTail(float64(len(d)-1), t)}
}

// CohensD is the effect size d_z of paired differences: their mean over their sample standard
// deviation (Cohen 1988, section 2.3.5). It is not Cohen's d of two independent samples, which
// divides by the deviation within these. 0 for differences that are all 0.
func CohensD(d []float64) float64 {
	m := MomentsOf(d)
	if m.Mean == 0 {
		return 0
	}
	return m.Mean / m.Deviation
}

// The bounds of SciPy 1.17 for an exact p-value, in differences, zeros included.
const (
	exactUntied = 50
	exactTied   = 13
)

// Wilcoxon is the signed-rank test (Wilcoxon 1945) of differences, as scipy.stats.wilcoxon of
// SciPy 1.17 has it by default: exact for at most 50 differences, or at most 13 if some are 0 or
// tie; otherwise the normal approximation. See WilcoxonExact and WilcoxonApproximate.
func Wilcoxon(d []float64) Test {
	most := exactUntied
	if s := signedRanks(d); s.tied || len(s.ranks) < len(d) {
		most = exactTied
	}
	if len(d) <= most {
		return WilcoxonExact(d)
	}
	return WilcoxonApproximate(d)
}

// signed are the ranks of the differences that are not 0, by their size, from 1; ties have the
// mean of their ranks. Differences has removed what is rounding.
type signed struct {
	ranks []float64
	plus  float64 // the sum of the ranks of positive differences
	total float64
	cubes float64 // Σ t³ - t over the sizes t of groups of ties
	tied  bool
}

func signedRanks(d []float64) *signed {
	s := new(signed)
	var sizes []float64
	var positive []bool
	for _, v := range d {
		if v != 0 {
			sizes, positive = append(sizes, math.Abs(v)), append(positive, v > 0)
		}
	}
	s.ranks, s.cubes = ranked(sizes)
	for i, r := range s.ranks {
		s.total += r
		if positive[i] {
			s.plus += r
		}
	}
	s.tied = s.cubes > 0
	return s
}

// statistic is the smaller sum of ranks.
func (s *signed) statistic() float64 { return min(s.plus, s.total-s.plus) }

// WilcoxonExact is the exact signed-rank test. It counts all 2^n choices of signs of the n differences that are not 0,
// with their ranks, ties included. P is twice the fraction of choices with a sum of positive ranks of at most the
// statistic, at most 1. Zeros are left out. P is 1 if nothing is left.
func WilcoxonExact(d []float64) Test {
	s := signedRanks(d)
	// Twice a mean of ranks is a whole number: shares[j] is the fraction of choices with the sum j/2.
	shares := []float64{1}
	for _, r := range s.ranks {
		add := int(2 * r) // to half of the choices
		next := make([]float64, len(shares)+add)
		for j, share := range shares {
			next[j] += float64(share / 2)
			next[j+add] += float64(share / 2)
		}
		shares = next
	}
	low := 0.0
	for j := 0; j <= int(2*s.statistic()); j++ {
		low += shares[j]
	}
	return Test{s.statistic(), min(1, 2*low)}
}

// WilcoxonApproximate is the signed-rank test by the normal distribution, with the variance corrected for ties and
// without a correction for continuity. Zeros are left out. P is 1 if nothing is left.
func WilcoxonApproximate(d []float64) Test {
	s := signedRanks(d)
	n := float64(len(s.ranks))
	if n == 0 {
		return Test{0, 1}
	}
	variance := (float64(n*(n+1)*(float64(2*n)+1)) - float64(s.cubes/2)) / 24
	z := (s.plus - float64(s.total/2)) / math.Sqrt(variance)
	return Test{s.statistic(), math.Erfc(math.Abs(z) / math.Sqrt2)}
}

// ranked returns the ranks of values, from 1 for the least, and Σ t³ - t over the numbers t of values that tie.
func ranked(values []float64) (ranks []float64, cubes float64) {
	values = Merged(values)
	order := ascending(values)
	ranks = make([]float64, len(values))
	for from := 0; from < len(order); {
		to := from + 1
		for to < len(order) && values[order[to]] == values[order[from]] {
			to++
		}
		for _, i := range order[from:to] {
			ranks[i] = float64(from+1+to) / 2
		}
		t := float64(to - from)
		cubes += float64(t*t*t) - t
		from = to
	}
	return ranks, cubes
}

// The distributions of the tests. The package distuv of gonum has them too, but its imports add all of BLAS and LAPACK
// to the binary.

// halfLogTwoPi is log(2π)/2.
const halfLogTwoPi = 0.91893853320467274178

// normalDensity is the density of the standard normal distribution.
func normalDensity(z float64) float64 {
	return math.Exp(-halfLogTwoPi - float64(z*z/2))
}

// normalCDF is the probability that a standard normal value is at most z.
func normalCDF(z float64) float64 { return 0.5 * math.Erfc(-z/math.Sqrt2) }

// chiSquaredTail is the probability that a value of the chi-squared distribution with k degrees of freedom is above x.
func chiSquaredTail(k, x float64) float64 { return mathext.GammaIncRegComp(0.5*k, 0.5*x) }

// studentTail is the probability that a value of Student's distribution with nu degrees of freedom is above |t|.
func studentTail(nu, t float64) float64 {
	if t == 0 {
		return 0.5
	}
	return 0.5 * mathext.RegIncBeta(nu/2, 0.5, nu/(float64(t*t)+nu))
}
