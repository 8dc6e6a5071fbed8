package num

import (
	"math/bits"
	"unsafe"
)

// Below lists the values of v that are not above limit: their values in dst, their positions plus
// from in at, in the order of v. It returns how many there are. Both dst and at are as long as v
// at least; what they have behind the list is undefined. NaN is not listed.
func Below(dst []float32, at []uint32, v []float32, limit float32, from uint32) int {
	if len(dst) < len(v) || len(at) < len(v) {
		panic("num: a list shorter than its values")
	}
	n, found := WholeVectors(len(v)), 0
	if Accelerated && n > 0 {
		found = belowAVX2(&dst[0], &at[0], &v[0], n, limit, from, &FrontOrder[0])
	}
	for i, x := range v[n:] {
		if x <= limit {
			dst[found], at[found] = x, from+uint32(n+i)
			found++
		}
	}
	return found
}

// FrontOrder has, for each mask of eight lanes, the lanes of the mask in ascending order, a byte
// each.
var FrontOrder = func() (order [256]uint64) {
	for mask := range order {
		for left, place := uint8(mask), 0; left != 0; left, place = left&(left-1), place+8 {
			order[mask] |= uint64(bits.TrailingZeros8(left)) << place
		}
	}
	return order
}()

// AddRows64 adds the rows index[k] of m (row-major, as wide as dst) to dst, for k = 0, 1, ... in
// order: each sum is rounded once.
func AddRows64(dst []float64, m []float32, index []uint32) {
	n := len(dst)
	if n == 0 || len(index) == 0 {
		return
	}
	if !Accelerated {
		addRows64Go(dst, m, index)
	} else if !addRows64AVX2(&dst[0], n, unsafe.SliceData(m), &index[0], len(index), len(m)/n) {
		panicIndex()
	}
}

func addRows64Go(dst []float64, m []float32, index []uint32) {
	n := len(dst)
	for _, r := range index {
		at := int(r) * n
		if at+n > len(m) {
			panicIndex()
		}
		for j, x := range m[at : at+n] {
			dst[j] += float64(x)
		}
	}
}

// SquaresAt sets dst[k] to the squared distance between x and the scaled row r = index[k] of m (row-major, as wide as
// x): the sum of (x[c] - m[r,c]·scale[c])² over ascending c. Products, differences, squares and sums are rounded one by
// one.
func SquaresAt(dst, x, scale []float64, m []float32, index []uint32) {
	n := len(x)
	checkSame(len(scale), n)
	checkSame(len(dst), len(index))
	for len(index) > 0 {
		rows := min(4, len(index))
		var at [4][]float32
		for i := range at {
			from := int(index[min(i, rows-1)]) * n
			if from+n > len(m) {
				panicIndex()
			}
			at[i] = m[from : from+n]
		}
		var sums [4]float64
		whole := 0
		if Accelerated && n >= 4 {
			whole = n &^ 3
			squaresAtAVX2(&sums[0], &x[0], &scale[0], &at[0][0], &at[1][0], &at[2][0], &at[3][0], whole)
		}
		squaresAtGo(&sums, x[whole:], scale[whole:], at[0][whole:], at[1][whole:], at[2][whole:], at[3][whole:])
		copy(dst, sums[:rows])
		dst, index = dst[rows:], index[rows:]
	}
}

// squaresAtGo adds the squared differences of four rows to sums.
func squaresAtGo(sums *[4]float64, x, scale []float64, a, b, c, d []float32) {
	scale, a, b, c, d = scale[:len(x)], a[:len(x)], b[:len(x)], c[:len(x)], d[:len(x)]
	s0, s1, s2, s3 := sums[0], sums[1], sums[2], sums[3]
	for i, v := range x {
		s := scale[i]
		d0, d1, d2, d3 := v-float64(float64(a[i])*s), v-float64(float64(b[i])*s), v-float64(float64(c[i])*s),
			v-float64(float64(d[i])*s)
		s0 += float64(d0 * d0)
		s1 += float64(d1 * d1)
		s2 += float64(d2 * d2)
		s3 += float64(d3 * d3)
	}
	sums[0], sums[1], sums[2], sums[3] = s0, s1, s2, s3
}
