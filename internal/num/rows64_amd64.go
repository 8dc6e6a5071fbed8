//go:build !purego

package num

import "unsafe"

//go:noescape
func mulAddRowsAt64AVX2(dst *float64, n int, a *float32, rows int, m *float64, index *uint32, limit int) bool

//go:noescape
func addOuterAt64AVX2(m *float64, n int, a *float32, rows int, x *float64, index *uint32, limit int) bool

func mulAddRowsAt64(dst []float64, a []float32, index []uint32, m []float64) {
	if !accelerated {
		mulAddRowsAt64Go(dst, a, index, m)
		return
	}
	n := len(dst)
	if !mulAddRowsAt64AVX2(unsafe.SliceData(dst), n, unsafe.SliceData(a), len(a), unsafe.SliceData(m), unsafe.SliceData(index), len(m)/n) {
		panicIndex()
	}
}

func addOuterAt64(m []float64, index []uint32, a []float32, x []float64) {
	if !accelerated {
		addOuterAt64Go(m, index, a, x)
		return
	}
	n := len(x)
	if !addOuterAt64AVX2(unsafe.SliceData(m), n, unsafe.SliceData(a), len(a), unsafe.SliceData(x), unsafe.SliceData(index), len(m)/n) {
		panicIndex()
	}
}
