//go:build !purego

package num

import "unsafe"

//go:noescape
func momentumRowsAVX2(x, v, values *float32, index *uint32, rows, present, width int, factor, rate, momentum, decay float32) bool

// momentumRows does MomentumRows where rows are whole vectors.
func momentumRows(x, v, values []float32, index []uint32, width int, factor, rate, momentum, decay float32) (done, finite bool) {
	if !accelerated || width%8 != 0 || len(x) == 0 {
		return false, false
	}
	return true, momentumRowsAVX2(unsafe.SliceData(x), unsafe.SliceData(v), unsafe.SliceData(values), unsafe.SliceData(index),
		len(x)/width, len(index), width, factor, rate, momentum, decay)
}
