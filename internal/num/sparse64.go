package num

import "unsafe"

// Span is where the entries of a sparse row stand: those from From on, before To.
type Span struct{ From, To uint32 }

// AddSparseProduct64 adds the product of sparse rows and m to dst (row-major, a row of n for each span):
// the entries of a row, with values a in the columns that index names, each add a[k]·m[index[k],j] to
// its dst[j], in order. The rows of m have n values. Each product is rounded before it is added.
func AddSparseProduct64(dst []float64, rows []Span, a []float32, index []uint32, m []float64, n int) {
	checkSpans(len(dst), rows, len(a), len(index), n)
	if len(dst) == 0 {
		return
	}
	if Accelerated {
		if !addSparseProduct64AVX2(&dst[0], n, &rows[0], len(rows), unsafe.SliceData(a), unsafe.SliceData(index), unsafe.SliceData(m), len(m)/n) {
			panicIndex()
		}
		return
	}
	for i, r := range rows {
		for k := r.From; k < r.To; k++ {
			addScaled64(dst[i*n:][:n], float64(a[k]), rowAt(m, index[k], n))
		}
	}
}

// AddSparseProductT64 adds the product of the transpose of sparse rows and x (row-major, a row of n for each
// span) to m, whose rows have n values: m[index[k],j] += a[k]·x[i,j] for the rows and their entries k
// in order, each product rounded before it is added.
func AddSparseProductT64(m []float64, rows []Span, a []float32, index []uint32, x []float64, n int) {
	checkSpans(len(x), rows, len(a), len(index), n)
	if len(x) == 0 {
		return
	}
	if Accelerated {
		if !addSparseProductT64AVX2(unsafe.SliceData(m), n, &rows[0], len(rows), unsafe.SliceData(a), unsafe.SliceData(index), &x[0], len(m)/n) {
			panicIndex()
		}
		return
	}
	for i, r := range rows {
		for k := r.From; k < r.To; k++ {
			addScaled64(rowAt(m, index[k], n), float64(a[k]), x[i*n:][:n])
		}
	}
}

func checkSpans(values int, rows []Span, a, index, n int) {
	checkIndex(a, index)
	checkSame(values, len(rows)*n)
	for _, r := range rows {
		if r.From > r.To || int(r.To) > a {
			panicIndex()
		}
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
