package num

// MulAddRowsAt64 adds the combination a of rows of m (row-major, each len(dst) long) to dst:
// dst[j] += a[k]·m[index[k],j] for k in order, each product rounded before it is added: a
// sparse row times m.
func MulAddRowsAt64(dst []float64, a []float32, index []uint32, m []float64) {
	checkIndex(len(a), len(index))
	if len(dst) > 0 && len(a) > 0 {
		mulAddRowsAt64(dst, a, index, m)
	}
}

// AddOuterAt64 adds the outer product of a sparse row and x to m (row-major, each row len(x) long):
// m[index[k],j] += a[k]·x[j] for k in order, each product rounded before it is added.
func AddOuterAt64(m []float64, index []uint32, a []float32, x []float64) {
	checkIndex(len(a), len(index))
	if len(x) > 0 && len(a) > 0 {
		addOuterAt64(m, index, a, x)
	}
}

func mulAddRowsAt64Go(dst []float64, a []float32, index []uint32, m []float64) {
	n := len(dst)
	for k, x := range a {
		addScaled64(dst, float64(x), rowAt(m, index[k], n))
	}
}

func addOuterAt64Go(m []float64, index []uint32, a []float32, x []float64) {
	n := len(x)
	for k, y := range a {
		addScaled64(rowAt(m, index[k], n), float64(y), x)
	}
}

// rowAt returns a row of n values.
func rowAt(m []float64, row uint32, n int) []float64 {
	at := int(row) * n
	if at+n > len(m) {
		panicIndex()
	}
	return m[at : at+n]
}

func addScaled64(dst []float64, a float64, x []float64) {
	x = x[:len(dst)]
	for j := range dst {
		dst[j] += float64(a * x[j])
	}
}
