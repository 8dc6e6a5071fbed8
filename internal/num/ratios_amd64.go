//go:build !purego

package num

import "unsafe"

//go:noescape
func mul32AVX2(dst, a *float32, n int)

//go:noescape
func add64AVX2(dst, a *float64, n int)

//go:noescape
func ratiosAVX2(r *float32, sum *float64, d, below *float32, n int, weight, floor float32) int

// wholeVectors returns how many of n elements the vectors of eight take: none on a
// processor without, which must not even see an instruction of theirs.
func wholeVectors(n int) int {
	if !accelerated {
		return 0
	}
	return n &^ 7
}

// mul32 does the start of Mul32 and returns its length.
func mul32(dst, a []float32) int {
	n := wholeVectors(len(dst))
	if n > 0 {
		mul32AVX2(unsafe.SliceData(dst), unsafe.SliceData(a), n)
	}
	return n
}

// add64 does the start of Add64 and returns its length.
func add64(dst, a []float64) int {
	n := wholeVectors(len(dst))
	if n > 0 {
		add64AVX2(unsafe.SliceData(dst), unsafe.SliceData(a), n)
	}
	return n
}

// ratios does the start of Ratios and returns its length: until the end, less what is
// no whole vector, or a vector with a ratio that is not finite.
func ratios(r []float32, sum []float64, d, g []float32, weight, floor float32) int {
	if !accelerated {
		return 0
	}
	return ratiosAVX2(unsafe.SliceData(r), unsafe.SliceData(sum), unsafe.SliceData(d), unsafe.SliceData(g),
		len(r)&^(ratioLanes-1), weight, floor)
}
