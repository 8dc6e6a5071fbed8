//go:build !purego

package num

import "unsafe"

//go:noescape
func dot64AVX2(s, a, b *float64, n int)

//go:noescape
func addScaled64AVX2(dst *float64, a float64, x *float64, n int)

// dot64 does the start of Dot64 and returns its length, a multiple of 4.
func dot64(s *[4]float64, a, b []float64) int {
	n := len(a) &^ 3
	if !accelerated || n == 0 {
		return 0
	}
	dot64AVX2(&s[0], unsafe.SliceData(a), unsafe.SliceData(b), n)
	return n
}

// addScaled64Vectors does the start of AddScaled64 and returns its length.
func addScaled64Vectors(dst []float64, a float64, x []float64) int {
	n := len(dst) &^ 7
	if !accelerated || n == 0 {
		return 0
	}
	addScaled64AVX2(unsafe.SliceData(dst), a, unsafe.SliceData(x), n)
	return n
}
