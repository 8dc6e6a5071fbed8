package simplex

import (
	"math"
	"slices"
)

// Project moves p to the nearest point with values of at least 0 and the sum 1: max(0, p_c - θ). It uses the memory of
// sorted, as long as p.
func Project(p, sorted []float64) {
	most := slices.Max(p)
	if !(math.Abs(most) <= math.MaxFloat64) { // features beyond all numbers
		for c := range p {
			p[c] = 1 / float64(len(p))
		}
		return
	}
	for c := range p { // which changes no result, and keeps the digits of great values
		p[c] -= most
	}
	copy(sorted, p)
	slices.Sort(sorted)
	sum, theta := 0.0, 0.0
	for k := range sorted {
		x := sorted[len(sorted)-1-k]
		sum += x
		if t := (sum - 1) / float64(k+1); x > t {
			theta = t
		}
	}
	whole := 0.0
	for c, x := range p {
		p[c] = max(0, x-theta)
		whole += p[c]
	}
	for c := range p {
		p[c] /= whole
	}
}

// Weighted sets m to the point with values of at least 0 and the sum 1 that minimises Σ a_c m_c²/2 - b_c m_c, where all
// a_c are above 0: m_c = max(0, (b_c - θ)/a_c). It uses the memory of order, as long as m.
func Weighted(m, a, b []float64, order []int) {
	for c := range order {
		order[c] = c
	}
	slices.SortStableFunc(order, func(i, j int) int {
		switch {
		case b[i] > b[j]:
			return -1
		case b[i] < b[j]:
			return 1
		}
		return i - j
	})
	sum, inverse, theta := -1.0, 0.0, 0.0
	for _, c := range order {
		sum += b[c] / a[c]
		inverse += 1 / a[c]
		if t := sum / inverse; b[c] > t {
			theta = t
		}
	}
	for c := range m {
		m[c] = max(0, (b[c]-theta)/a[c])
	}
}
