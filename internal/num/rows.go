package num

// MulAddRows adds the combination a of the rows of m (len(a) × len(dst),
// row-major) to dst: dst[j] = fma(a[k], m[k,j], dst[j]) for k = 0, 1, ... in
// order. That is dst += aᵀm.
func MulAddRows(dst, a, m []float32) {
	checkRows(len(m), len(a), len(dst))
	mulAddRows(dst, a, m)
}

// MulAddRowsAt is MulAddRows with the rows index[k] of m: dst[j] =
// fma(a[k], m[index[k],j], dst[j]), the product of a sparse row with m.
func MulAddRowsAt(dst, a []float32, index []uint32, m []float32) {
	checkIndex(len(a), len(index))
	mulAddRowsAt(dst, a, index, m)
}

// AddOuter adds the outer product of a and x to m (len(a) × len(x), row-major):
// m[k,j] = fma(a[k], x[j], m[k,j]).
func AddOuter(m, a, x []float32) {
	checkRows(len(m), len(a), len(x))
	addOuter(m, a, x)
}

// AddOuterAt is AddOuter on the rows index[k] of m: m[index[k],j] =
// fma(a[k], x[j], m[index[k],j]), for k in order where a row comes twice.
func AddOuterAt(m []float32, index []uint32, a, x []float32) {
	checkIndex(len(a), len(index))
	addOuterAt(m, index, a, x)
}

// AddOuter64 is AddOuter into float64 sums: m[k,j] += a[k]·x[j], the product
// exact and the sum rounded once.
func AddOuter64(m []float64, a, x []float32) {
	checkRows(len(m), len(a), len(x))
	addOuter64(m, a, x)
}

func checkRows(have, rows, width int) {
	if have < rows*width {
		panic("num: a matrix shorter than its shape")
	}
}

func checkIndex(values, index int) {
	if values != index {
		panic("num: a sparse row of different numbers of values and indices")
	}
}

func panicIndex() { panic("num: a row index outside its matrix") }
