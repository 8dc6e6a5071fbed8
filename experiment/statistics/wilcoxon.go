package statistics

import (
	"cmp"
	"math"
	"slices"
)

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

// WilcoxonExact is the exact signed-rank test. It counts all 2^n choices of signs of the n differences that are not 0, with
// their ranks, ties included. P is twice the fraction of choices with a sum of positive ranks of at most the statistic, at
// most 1. Zeros are left out. P is 1 if nothing is left.
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

// WilcoxonApproximate is the signed-rank test by the normal distribution, with the variance corrected for ties and without a
// correction for continuity. Zeros are left out. P is 1 if nothing is left.
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

// Ranks returns the rank of each value, from 1 for the least; values that are Equal have the mean of
// their ranks.
func Ranks(values []float64) []float64 {
	ranks, _ := ranked(values)
	return ranks
}

// ranked returns the ranks of values, and Σ t³ - t over the numbers t of values that tie.
func ranked(values []float64) (ranks []float64, cubes float64) {
	values = Merged(values)
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
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
