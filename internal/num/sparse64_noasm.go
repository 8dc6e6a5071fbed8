//go:build !amd64 || purego

package num

func addSparseProduct64(dst []float64, rows []Span, a []float32, index []uint32, m []float64, n int) {
	addSparseProduct64Go(dst, rows, a, index, m, n)
}

func addSparseProductT64(m []float64, rows []Span, a []float32, index []uint32, x []float64, n int) {
	addSparseProductT64Go(m, rows, a, index, x, n)
}
