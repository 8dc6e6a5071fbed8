package statistics

import (
	"cmp"
	"math"
	"slices"
)

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

// CriticalDifference is Nemenyi's critical difference. Two of k models differ at the level alpha if their average ranks over n
// datasets are farther apart than q sqrt(k (k + 1) / (6 n)). q is the 1 - alpha quantile of the studentised range of k values
// with infinitely many degrees of freedom, divided by √2 (Demšar 2006, section 3.2.2).
func CriticalDifference(k, n int, alpha float64) float64 {
	return RangeQuantile(1-alpha, k) * rankError(k, n)
}

// rankError is the unit of the studentised range of average ranks.
func rankError(k, n int) float64 {
	return math.Sqrt(float64(k*(k+1)) / float64(12*n))
}

// Clique is a sequence of models, in the order of their average ranks, in which no two models differ by more than the critical
// difference. First and Last count from 0 in that order.
type Clique struct{ First, Last int }

// Cliques returns the longest sequences of at least two models with sorted ranks within the critical difference. None is part of
// another.
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
