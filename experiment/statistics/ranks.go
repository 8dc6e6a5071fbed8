package statistics

import (
	"errors"
	"math"
	"slices"

	"gonum.org/v1/gonum/integrate/quad"
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
		ranks, _ := ranked(directed(row, higherIsBetter))
		for i, r := range ranks {
			mean[i] += r // exact: halves
		}
	}
	for i := range mean {
		mean[i] /= float64(len(values))
	}
	return mean
}

// CriticalDifference is Nemenyi's critical difference. Two of k models differ at the level alpha if their average ranks
// over n datasets are farther apart than q sqrt(k (k + 1) / (6 n)). q is the 1 - alpha quantile of the studentised
// range of k values with infinitely many degrees of freedom, divided by √2 (Demšar 2006, section 3.2.2).
func CriticalDifference(k, n int, alpha float64) float64 {
	return RangeQuantile(1-alpha, k) * rankError(k, n)
}

// rankError is the unit of the studentised range of average ranks.
func rankError(k, n int) float64 {
	return math.Sqrt(float64(k*(k+1)) / float64(12*n))
}

// Clique is a sequence of models, in the order of their average ranks, in which no two models differ by more than the
// critical difference. First and Last count from 0 in that order.
type Clique struct{ First, Last int }

// Cliques returns the longest sequences of at least two models with sorted ranks within the critical difference. None
// is part of another.
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
	order := slices.DeleteFunc(ascending(p), func(i int) bool { return math.IsNaN(p[i]) })
	adjusted, most := slices.Clone(p), 0.0
	for rank, i := range order {
		most = max(most, min(1, float64(len(order)-rank)*p[i]))
		adjusted[i] = most
	}
	return adjusted
}

// ErrShape is what errors about tables of values wrap.
var ErrShape = errors.New("the Friedman test needs at least two methods and two datasets, with a value of each " +
	"method on each dataset")

// FriedmanTest is the outcome of Friedman's test: Statistic is χ².
type FriedmanTest struct {
	Test
	// Exact is true if P counts the ways to rank the models. Otherwise P is from the χ² distribution with k - 1 degrees of
	// freedom.
	Exact bool
	// Least is, of an exact test, the least P that these numbers of datasets, models and ties can
	// give; else 0.
	Least float64
}

// exactUpTo bounds, by the number of models, the datasets for which Friedman's P is exact.
var exactUpTo = map[int]int{2: 1000, 3: 50, 4: 15, 5: 6, 6: 3, 7: 2, 8: 2}

// Friedman is Friedman's test over N datasets (the rows of values) of k models (its columns): χ² with
// the correction for ties, as in scipy.stats.friedmanchisquare. For few datasets P is exact: the fraction of all ways
// to permute the ranks of each dataset that give at least this χ². For two models this is the sign test, which leaves
// ties out. P is 1 if all models tie on all datasets.
func Friedman(values [][]float64) (FriedmanTest, error) {
	if len(values) < 2 || len(values[0]) < 2 {
		return FriedmanTest{}, ErrShape
	}
	n, k := float64(len(values)), len(values[0])
	for _, row := range values {
		if len(row) != k || slices.ContainsFunc(row, math.IsNaN) {
			return FriedmanTest{}, ErrShape
		}
	}
	sums, cubes, ranks := make([]float64, k), 0.0, make([][]float64, len(values))
	for d, row := range values {
		own := 0.0
		ranks[d], own = ranked(row)
		cubes += own
		for i, r := range ranks[d] {
			sums[i] += r
		}
	}
	correction := 1 - cubes/(n*float64(k*(k*k-1)))
	if correction == 0 {
		return FriedmanTest{Test{0, 1}, true, 1}, nil
	}
	squares := 0.0
	for _, s := range sums {
		squares += float64(s * s)
	}
	kf := float64(k)
	chi2 := max(0, (float64(12/(n*kf*(kf+1))*squares)-float64(3*n*(kf+1)))/correction)
	if len(values) <= exactUpTo[k] {
		p, least := exactFriedman(ranks)
		return FriedmanTest{Test{chi2, p}, true, least}, nil
	}
	return FriedmanTest{Test{chi2, chiSquaredTail(kf-1, chi2)}, false, 0}, nil
}

// mostExact is the greatest number of models in exactUpTo.
const mostExact = 8

// rankSums are twice the sums of the ranks of at most mostExact models, ascending. χ² does not depend on their order.
type rankSums [mostExact]int

// exactFriedman returns the fraction of the ways to permute the ranks of each dataset that give at least the sum of
// squares of these ranks, and the fraction that gives the greatest sum of squares. For given ties, χ² grows with the
// squares of the rank sums.
func exactFriedman(ranks [][]float64) (p, least float64) {
	k := len(ranks[0])
	var have rankSums
	ways := map[rankSums]float64{{}: 1} // the share of each outcome so far
	for d, row := range ranks {
		twice := make([]int, k)
		for i, r := range row {
			twice[i] = int(2 * r)
			have[i] += twice[i]
		}
		slices.Sort(twice)
		orders := [][]int{twice} // of the first dataset: which model is which does not matter
		if d > 0 {
			orders = ordersOf(twice)
		}
		next := make(map[rankSums]float64, len(ways))
		for _, sums := range sortedSums(ways) {
			share := ways[sums] / float64(len(orders))
			for _, order := range orders {
				to := sums
				for i, r := range order {
					to[i] += r
				}
				slices.Sort(to[:k])
				next[to] += share
			}
		}
		ways = next
	}
	most := 0
	for _, sums := range sortedSums(ways) {
		squares := sums.squares()
		if squares >= have.squares() {
			p += ways[sums]
		}
		if squares > most {
			most, least = squares, 0
		}
		if squares == most {
			least += ways[sums]
		}
	}
	return min(1, p), least
}

func (s *rankSums) squares() (sum int) {
	for _, v := range s {
		sum += v * v
	}
	return sum
}

// sortedSums lists the outcomes in one order, so that shares are added in one order.
func sortedSums(ways map[rankSums]float64) []rankSums {
	list := make([]rankSums, 0, len(ways))
	for sums := range ways {
		list = append(list, sums)
	}
	slices.SortFunc(list, func(a, b rankSums) int { return slices.Compare(a[:], b[:]) })
	return list
}

// ordersOf lists the different orders of numbers that ascend, in lexicographic order. Each of them
// has the same share of all permutations.
func ordersOf(ascending []int) (all [][]int) {
	next := slices.Clone(ascending)
	for {
		all = append(all, slices.Clone(next))
		i := len(next) - 2
		for i >= 0 && next[i] >= next[i+1] {
			i--
		}
		if i < 0 {
			return all
		}
		j := len(next) - 1
		for next[j] <= next[i] {
			j--
		}
		next[i], next[j] = next[j], next[i]
		slices.Reverse(next[i+1:])
	}
}

// The integral of RangeCDF is cut at ±rangeLimit, beyond which the normal density is below
// 1e-22, into pieces of so many points of Gauss and Legendre.
const (
	rangeLimit  = 10
	rangePieces = 40
	rangePoints = 16
)

// RangeCDF is the probability that the range of k independent standard normal values is at
// most q: k ∫ φ(z) (Φ(z) - Φ(z - q))^(k-1) dz, the studentised range with infinitely many
// degrees of freedom. Its error is below 1e-12.
func RangeCDF(q float64, k int) float64 {
	if q <= 0 {
		return 0
	}
	density := func(z float64) float64 {
		inside := float64(normalCDF(z)) - float64(normalCDF(z-q))
		return normalDensity(z) * math.Pow(inside, float64(k-1))
	}
	sum, width := 0.0, 2*float64(rangeLimit)/rangePieces
	for i := range rangePieces {
		from := float64(float64(i)*width) - rangeLimit
		sum += quad.Fixed(density, from, from+width, rangePoints, quad.Legendre{}, 1)
	}
	return min(1, float64(k)*sum)
}

// RangeQuantile is the q with RangeCDF p, by bisection, for 0 < p < 1 and k of at least 2.
func RangeQuantile(p float64, k int) float64 {
	if !(p > 0 && p < 1) || k < 2 {
		panic("statistics: no such quantile of a range")
	}
	low, high := 0.0, 1.0
	for RangeCDF(high, k) < p && high < 64 {
		low, high = high, 2*high
	}
	for range 60 {
		if middle := (low + high) / 2; RangeCDF(middle, k) < p {
			low = middle
		} else {
			high = middle
		}
	}
	return (low + high) / 2
}
