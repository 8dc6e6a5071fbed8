//go:build !purego

package num

import "unsafe"

//go:noescape
func momentumAVX2(x, v, grad *float32, n int, rate, momentum, decay float32) bool

//go:noescape
func adamAVX2(x, m, v, grad *float32, n int, a *AdamFactors) bool

// momentumStart does the start of Momentum and returns its length.
func momentumStart(x, v, g []float32, rate, momentum, decay float32) (int, bool) {
	n := wholeVectors(len(x))
	if n == 0 {
		return 0, true
	}
	return n, momentumAVX2(unsafe.SliceData(x), unsafe.SliceData(v), unsafe.SliceData(g), n, rate, momentum, decay)
}

// adamStart does the start of Adam and returns its length.
func adamStart(x, m, v, g []float32, a *AdamFactors) (int, bool) {
	n := wholeVectors(len(x))
	if n == 0 {
		return 0, true
	}
	return n, adamAVX2(unsafe.SliceData(x), unsafe.SliceData(m), unsafe.SliceData(v), unsafe.SliceData(g), n, a)
}
