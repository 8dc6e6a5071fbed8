//go:build !purego

package num

import "unsafe"

//go:noescape
func squaresAVX2(dst, panel, x *float64, n int)

//go:noescape
func addSquaresAVX2(v, y *float64, n int, x float64)

//go:noescape
func addConstantAVX2(v *float64, n int, x float64)

// squares does all of Squares, or nothing, and reports which.
func squares(dst, panel, x []float64) bool {
	if !accelerated {
		return false
	}
	squaresAVX2(unsafe.SliceData(dst), unsafe.SliceData(panel), unsafe.SliceData(x), len(x))
	return true
}

// addConstant does the start of AddConstant and returns its length.
func addConstant(v []float64, x float64) int {
	n := wholeVectors(len(v))
	if n > 0 {
		addConstantAVX2(unsafe.SliceData(v), n, x)
	}
	return n
}

// addSquares does the start of AddSquares and returns its length.
func addSquares(v, y []float64, x float64) int {
	n := wholeVectors(len(v))
	if n > 0 {
		addSquaresAVX2(unsafe.SliceData(v), unsafe.SliceData(y), n, x)
	}
	return n
}
