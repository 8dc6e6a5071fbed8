//go:build !purego

package num

import "unsafe"

//go:noescape
func addOuterViaAVX2(m *float32, n int, a *float32, rows int, x *float32, index, slot *uint32, slots, limit int) bool

//go:noescape
func addOuterViaAVX512(m *float32, n int, a *float32, rows int, x *float32, index, slot *uint32, slots, limit int) bool

// addOuterVia does AddOuterVia where rows are whole blocks of eight vectors, or four of the
// widest.
func addOuterVia(m []float32, slot, index []uint32, a, x []float32) bool {
	n := len(x)
	if !accelerated || n == 0 || n%64 != 0 {
		return false
	}
	run := addOuterViaAVX2
	if wide {
		run = addOuterViaAVX512
	}
	if len(a) > 0 && !run(unsafe.SliceData(m), n, unsafe.SliceData(a), len(a), unsafe.SliceData(x), unsafe.SliceData(index),
		unsafe.SliceData(slot), len(slot), len(m)/n) {
		panicIndex()
	}
	return true
}
