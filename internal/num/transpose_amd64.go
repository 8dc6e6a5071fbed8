//go:build !purego

package num

import "unsafe"

//go:noescape
func transposeAVX2(dst *float32, to int, src *float32, from, rows, columns int)

// transposed does the first rows and columns of Transpose32 and returns how many.
func transposed(dst []float32, to int, src []float32, from, rows, columns int) (r, c int) {
	r, c = wholeVectors(rows), columns&^3
	if r == 0 || c == 0 {
		return 0, 0
	}
	transposeAVX2(unsafe.SliceData(dst), to, unsafe.SliceData(src), from, r, c)
	return r, c
}
