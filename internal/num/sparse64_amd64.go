//go:build !purego

package num

import "unsafe"

//go:noescape
func addSparseProduct64AVX2(dst *float64, n int, spans *Span, rows int, a *float32, index *uint32, m *float64, limit int) bool

//go:noescape
func addSparseProductT64AVX2(m *float64, n int, spans *Span, rows int, a *float32, index *uint32, x *float64, limit int) bool

func addSparseProduct64(dst []float64, rows []Span, a []float32, index []uint32, m []float64, n int) {
	if !accelerated {
		addSparseProduct64Go(dst, rows, a, index, m, n)
		return
	}
	if !addSparseProduct64AVX2(unsafe.SliceData(dst), n, unsafe.SliceData(rows), len(rows), unsafe.SliceData(a), unsafe.SliceData(index), unsafe.SliceData(m), len(m)/n) {
		panicIndex()
	}
}

func addSparseProductT64(m []float64, rows []Span, a []float32, index []uint32, x []float64, n int) {
	if !accelerated {
		addSparseProductT64Go(m, rows, a, index, x, n)
		return
	}
	if !addSparseProductT64AVX2(unsafe.SliceData(m), n, unsafe.SliceData(rows), len(rows), unsafe.SliceData(a), unsafe.SliceData(index), unsafe.SliceData(x), len(m)/n) {
		panicIndex()
	}
}
