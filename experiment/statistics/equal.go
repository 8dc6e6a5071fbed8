package statistics

import (
	"cmp"
	"math"
	"slices"
)

// tolerance is the relative difference up to which two values are equal. Measures are sums and
// quotients in float64. Their last bits depend on the order of operations: 7/20 - 6/20 is not 1/20.
const tolerance = 1e-12

// Equal reports whether two values differ by rounding at most. All that compares measures, their
// means and their differences uses this rule: ranks, ties, zeros and places.
func Equal(a, b float64) bool { return within(a, b, max(math.Abs(a), math.Abs(b))) }

// within reports whether two values are equal that were computed from numbers up to scale.
func within(a, b, scale float64) bool {
	return a == b || !math.IsInf(scale, 0) && math.Abs(a-b) <= float64(tolerance*scale)
}

// Merged returns the values, each replaced by the least value that is Equal to it, so that ==
// compares them. If a is equal to b and b to c, so are a and c.
func Merged(values []float64) []float64 {
	scales := make([]float64, len(values))
	for i, v := range values {
		scales[i] = math.Abs(v)
	}
	return merged(values, scales)
}

// merged is Merged of values that were computed from numbers up to scales. Zeros stay apart.
func merged(values, scales []float64) []float64 {
	order, all := ascending(values), slices.Clone(values)
	for i := 1; i < len(order); i++ {
		a, b := order[i-1], order[i]
		if values[a] != 0 && within(values[a], values[b], max(scales[a], scales[b])) {
			all[b] = all[a]
		}
	}
	return all
}

// Differences returns a - b, value by value; the lists have one length. A difference of values that
// are Equal is 0. If the absolute values of differences differ only by the rounding of a and b, they become equal.
func Differences(a, b []float64) []float64 {
	if len(a) != len(b) {
		panic("statistics: two lists of different lengths")
	}
	d, sizes, scales := make([]float64, len(a)), make([]float64, len(a)), make([]float64, len(a))
	for i := range a {
		scales[i] = max(math.Abs(a[i]), math.Abs(b[i]))
		if !within(a[i], b[i], scales[i]) {
			d[i] = a[i] - b[i]
		}
		sizes[i] = math.Abs(d[i])
	}
	for i, size := range merged(sizes, scales) {
		d[i] = math.Copysign(size, d[i])
	}
	return d
}

// Places returns the place of each value: 1 for the best ones, 2 for the second, else 0. Values that
// are Equal share their place, and a NaN has none.
func Places(values []float64, higherIsBetter bool) []int {
	all, places := Merged(directed(values, higherIsBetter)), make([]int, len(values))
	least := func(above float64) float64 {
		next := math.NaN()
		for _, v := range all {
			if v > above && !(v >= next) {
				next = v
			}
		}
		return next
	}
	first := least(math.Inf(-1))
	second := least(first)
	for i, v := range all {
		switch v {
		case first:
			places[i] = 1
		case second:
			places[i] = 2
		}
	}
	return places
}

// Sum returns the sum of finite values, rounded once, so that their order does not matter: it adds
// them exactly, as a list of numbers that do not overlap (Shewchuk 1997).
func Sum(values []float64) float64 {
	var parts []float64 // by size, ascending
	for _, x := range values {
		n := 0
		for _, y := range parts {
			if math.Abs(x) < math.Abs(y) {
				x, y = y, x
			}
			sum := x + y
			if rest := y - (sum - x); rest != 0 {
				parts[n] = rest
				n++
			}
			x = sum
		}
		parts = append(parts[:n], x)
	}
	return rounded(parts)
}

// rounded adds numbers that do not overlap, the greatest first, until one is lost. If the lost number is half of the
// last bit, the next number decides in which direction to round.
func rounded(parts []float64) float64 {
	n := len(parts)
	if n == 0 {
		return 0
	}
	n--
	sum, rest := parts[n], 0.0
	for n > 0 && rest == 0 {
		n--
		x := sum
		sum = x + parts[n]
		rest = parts[n] - (sum - x)
	}
	if n > 0 && (rest < 0) == (parts[n-1] < 0) {
		if twice := 2 * rest; (sum+twice)-sum == twice {
			sum += twice
		}
	}
	return sum
}

// directed returns values such that the least is best.
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

// ascending returns the indexes of values in the order of the values.
func ascending(values []float64) []int {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
	return order
}
