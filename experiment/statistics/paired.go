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
// variance deviation² (1/n + ratio) instead of deviation²/n. ratio is the number of test samples divided by the number of training
// samples: 1/9 for ten folds.
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
