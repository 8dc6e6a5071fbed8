package statistics

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// ErrShape is what errors about tables of values wrap.
var ErrShape = errors.New("want at least two models and two datasets, with a value for each pair")

// AverageRanks returns the mean over datasets of the ranks of the models, from 1 for the best;
// equal values have the mean of their ranks. values has, for each dataset, one value of each
// model; no datasets give no ranks.
func AverageRanks(values [][]float64, higherIsBetter bool) []float64 {
	var mean []float64
	for _, row := range values {
		if mean == nil {
			mean = make([]float64, len(row))
		}
		for i, r := range Ranks(directed(row, higherIsBetter)) {
			mean[i] += r // exact: halves
		}
	}
	for i := range mean {
		mean[i] /= float64(len(values))
	}
	return mean
}

// directed returns values of which the least is best.
func directed(values []float64, higherIsBetter bool) []float64 {
	if !higherIsBetter {
		return values
	}
	negated := make([]float64, len(values))
	for i, v := range values {
		negated[i] = -v
	}
	return negated
}

// Friedman is Friedman's test over N datasets (the rows of values) of k models (its columns),
// with the correction for ties: χ² with k - 1 degrees of freedom, as
// scipy.stats.friedmanchisquare has it. P is 1 where all models tie on all datasets.
func Friedman(values [][]float64) (Test, error) {
	n, k, err := shape(values)
	if err != nil {
		return Test{}, err
	}
	sums, cubes := make([]float64, k), 0.0
	for _, row := range values {
		for i, r := range Ranks(row) {
			sums[i] += r
		}
		cubes += tieCubes(row)
	}
	correction := 1 - cubes/(n*float64(k*(k*k-1)))
	if correction == 0 {
		return Test{0, 1}, nil
	}
	squares := 0.0
	for _, s := range sums {
		squares += float64(s * s)
	}
	kf := float64(k)
	chi2 := (float64(12/(n*kf*(kf+1))*squares) - float64(3*n*(kf+1))) / correction
	return Test{chi2, distuv.ChiSquared{K: kf - 1}.Survival(chi2)}, nil
}

// shape returns the numbers of datasets and of models.
func shape(values [][]float64) (n float64, k int, err error) {
	if len(values) < 2 || len(values[0]) < 2 {
		return 0, 0, ErrShape
	}
	k = len(values[0])
	for _, row := range values {
		if len(row) != k || slices.ContainsFunc(row, math.IsNaN) {
			return 0, 0, ErrShape
		}
	}
	return float64(len(values)), k, nil
}

// CriticalDifference is Nemenyi's: two of k models differ at the level alpha where their
// average ranks over n datasets are farther apart than q sqrt(k (k + 1) / (6 n)), where q is
// the 1 - alpha quantile of the studentised range of k values with infinitely many degrees of
// freedom, over √2 (Demšar 2006, section 3.2.2).
func CriticalDifference(k, n int, alpha float64) float64 {
	return RangeQuantile(1-alpha, k) * rankError(k, n)
}

// rankError is the unit of the studentised range of average ranks.
func rankError(k, n int) float64 {
	return math.Sqrt(float64(k*(k+1)) / float64(12*n))
}

// Clique is a run of models, in the order of their average ranks, of which no two differ by
// more than the critical difference: First and Last count from 0 in that order.
type Clique struct{ First, Last int }

// Cliques returns the longest runs of at least two models whose sorted ranks are within the
// critical difference; none is part of another.
func Cliques(sorted []float64, difference float64) []Clique {
	var all []Clique
	end := 0
	for first := range sorted {
		last := first
		for last+1 < len(sorted) && sorted[last+1]-sorted[first] <= difference {
			last++
		}
		if last > first && last > end {
			all, end = append(all, Clique{first, last}), last
		}
	}
	return all
}

// Holm returns the p-values adjusted for their number by Holm 1979: of m values the i-th
// smallest, counted from 0, times m - i, at least the adjusted ones below it, at most 1. NaN
// stays, and counts as no comparison.
func Holm(p []float64) []float64 {
	var order []int
	adjusted := slices.Clone(p)
	for i, v := range p {
		if !math.IsNaN(v) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	most := 0.0
	for rank, i := range order {
		most = max(most, min(1, float64(len(order)-rank)*p[i]))
		adjusted[i] = most
	}
	return adjusted
}
