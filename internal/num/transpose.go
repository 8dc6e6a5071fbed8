package num

// Transpose32 sets dst[j·to+i] to src[i·from+j] for all i below rows and j below columns:
// the transpose of a matrix that stands in rows of from values, in rows of to values.
func Transpose32(dst []float32, to int, src []float32, from, rows, columns int) {
	if rows <= 0 || columns <= 0 {
		return
	}
	if from < columns || to < rows || len(src) < (rows-1)*from+columns || len(dst) < (columns-1)*to+rows {
		panic("num: a matrix shorter than its shape")
	}
	r, c := transposed(dst, to, src, from, rows, columns)
	transposeGo(dst, to, src, from, 0, r, c, columns)
	transposeGo(dst, to, src, from, r, rows, 0, columns)
}

// transposeGo does the rows [r, rows) and columns [c, columns).
func transposeGo(dst []float32, to int, src []float32, from, r, rows, c, columns int) {
	for i := r; i < rows; i++ {
		for j := c; j < columns; j++ {
			dst[j*to+i] = src[i*from+j]
		}
	}
}
