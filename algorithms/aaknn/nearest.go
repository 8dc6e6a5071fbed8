package aaknn

import "slices"

// nearest finds, among distances, those of the k nearest rows, for several k at once. Of rows at
// the same distance those that come first are nearer.
type nearest struct {
	ks    []int     // ascending
	limit []float64 // of each k: the distance of the last of the k rows
	ties  []int     // of each k: how many of the k rows are at that distance, and not found yet
	work  []float64

	rows    []uint32 // the rows that are among the nearest, ascending
	bracket []uint8  // of each of these: the least k, by its place in ks, whose rows it is among
}

// newNearest makes the working memory for so many distances.
func newNearest(ks []int, n int) *nearest {
	most := ks[len(ks)-1]
	return &nearest{
		ks: ks, limit: make([]float64, len(ks)), ties: make([]int, len(ks)), work: make([]float64, n),
		rows: make([]uint32, 0, most), bracket: make([]uint8, 0, most),
	}
}

// find sets rows and bracket. There are at least as many distances as the greatest k, and none is
// NaN.
func (s *nearest) find(distances []float64) {
	s.findLimits(distances)
	s.rows, s.bracket = s.rows[:0], s.bracket[:0]
	last := len(s.ks) - 1
	for i, d := range distances {
		if d > s.limit[last] {
			continue
		}
		if b := s.place(d); b <= last {
			s.rows, s.bracket = append(s.rows, uint32(i)), append(s.bracket, uint8(b))
		}
	}
}

// place returns the bracket of the next row at a distance; len(ks): none.
func (s *nearest) place(d float64) int {
	for b, limit := range s.limit {
		if d < limit {
			return b
		}
		if d == limit && s.ties[b] > 0 {
			for i := b; i < len(s.limit) && s.limit[i] == d; i++ {
				s.ties[i]--
			}
			return b
		}
	}
	return len(s.limit)
}

// findLimits sets limit and ties.
func (s *nearest) findLimits(distances []float64) {
	v := append(s.work[:0], distances...)
	for b := len(s.ks) - 1; b >= 0; b-- {
		k := s.ks[b]
		selectSmallest(v, k-1)
		v = v[:k]
		s.limit[b], s.ties[b] = v[k-1], 0
		for _, d := range v {
			if d == s.limit[b] {
				s.ties[b]++
			}
		}
	}
}

// So few values, or what is left after so many partitions, selectSmallest sorts.
const (
	few       = 24
	mostTurns = 64
)

// selectSmallest orders v so that v[k] is where it belongs and no value before it is greater, none
// after it is less.
func selectSmallest(v []float64, k int) {
	for turns := 0; len(v) > few && turns < mostTurns; turns++ {
		if i := partition(v); k < i {
			v = v[:i]
		} else {
			v, k = v[i:], k-i
		}
	}
	slices.Sort(v)
}

// partition divides v, of at least three values, in two parts that are not empty: no value of the
// first is greater than one of the second. It returns where the second begins.
func partition(v []float64) int {
	n := len(v)
	pivot := median(v[0], v[n/2], v[n-1])
	i, j := -1, n
	for {
		for i++; v[i] < pivot; i++ {
		}
		for j--; v[j] > pivot; j-- {
		}
		if i >= j {
			break
		}
		v[i], v[j] = v[j], v[i]
	}
	return max(1, i)
}

// median returns the median of three values.
func median(a, b, c float64) float64 { return max(min(a, b), min(max(a, b), c)) }
