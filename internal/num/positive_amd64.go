//go:build !purego

package num

import "unsafe"

//go:noescape
func keepPositiveAVX2(dst, v, by *float32, n int)

// keepPositive does the start of KeepPositive and returns its length.
func keepPositive(dst, v, by []float32) int {
	n := wholeVectors(len(dst))
	if n > 0 {
		keepPositiveAVX2(unsafe.SliceData(dst), unsafe.SliceData(v), unsafe.SliceData(by), n)
	}
	return n
}
