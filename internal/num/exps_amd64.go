//go:build !purego

package num

import "unsafe"

//go:noescape
func expsAVX2(dst, x *float64, n int) int

//go:noescape
func canonical64AVX2(v *float64, n int)

// exps does the start of Exps and returns its length.
func exps(dst, x []float64) int {
	if !accelerated || len(x) < 4 {
		return 0
	}
	return expsAVX2(unsafe.SliceData(dst), unsafe.SliceData(x), len(x)&^3)
}

// canonical64 does the start of Canonical64 and returns its length.
func canonical64(v []float64) int {
	n := len(v) &^ 7
	if !accelerated || n == 0 {
		return 0
	}
	canonical64AVX2(unsafe.SliceData(v), n)
	return n
}
