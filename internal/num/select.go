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
	n, found := wholeVectors(len(v)), 0
	if n > 0 {
		found = belowAVX2(&dst[0], &at[0], &v[0], n, limit, from, &frontOrder[0])
	}
	for i, x := range v[n:] {
		if x <= limit {
			dst[found], at[found] = x, from+uint32(n+i)
			found++
		}
	}
	return found
}

// frontOrder has, for each mask of eight lanes, the lanes of the mask in ascending order, a byte
// each.
var frontOrder = func() (order [256]uint64) {
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
	if !accelerated {
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
