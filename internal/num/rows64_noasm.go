//go:build !amd64 || purego

package num

func mulAddRowsAt64(dst []float64, a []float32, index []uint32, m []float64) {
	mulAddRowsAt64Go(dst, a, index, m)
}

func addOuterAt64(m []float64, index []uint32, a []float32, x []float64) {
	addOuterAt64Go(m, index, a, x)
}
