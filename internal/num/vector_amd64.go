//go:build !purego

package num

import "unsafe"

//go:noescape
func add32AVX2(dst, a *float32, n int)

//go:noescape
func scale32AVX2(v *float32, n int, a float32)

//go:noescape
func canonical32AVX2(v *float32, n int) (finite bool)

//go:noescape
func standardiseAVX2(dst, x *float32, shift, scale *float64, n int)

// standardise does the start of Standardise and returns its length.
func standardise(dst, x []float32, shift, scale []float64) int {
	n := wholeVectors(len(dst))
	if n > 0 {
		standardiseAVX2(unsafe.SliceData(dst), unsafe.SliceData(x), unsafe.SliceData(shift), unsafe.SliceData(scale), n)
	}
	return n
}

// add32 does the start of Add32 and returns its length.
func add32(dst, src []float32) int {
	n := wholeVectors(len(src))
	if n > 0 {
		add32AVX2(unsafe.SliceData(dst), unsafe.SliceData(src), n)
	}
	return n
}

// scale32 does the start of Scale32 and returns its length.
func scale32(v []float32, a float32) int {
	n := wholeVectors(len(v))
	if n > 0 {
		scale32AVX2(unsafe.SliceData(v), n, a)
	}
	return n
}

// canonical32 does the start of Canonical32 and returns its length, and whether it is finite.
func canonical32(v []float32) (n int, finite bool) {
	if n = wholeVectors(len(v)); n == 0 {
		return 0, true
	}
	return n, canonical32AVX2(unsafe.SliceData(v), n)
}
