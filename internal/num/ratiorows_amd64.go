//go:build !purego

package num

import "unsafe"

//go:noescape
func ratioRowsAVX512(r *float32, sum *float64, d, below *float32, rows, n, columns int, floor float32) int

// ratioRows does RatioRows from the column from on, as far as whole vectors without a
// ratio that is not finite go. It returns the number of columns done, and how many are
// to be done otherwise before the next vector.
func ratioRows(r []float32, sum []float64, d, g []float32, floor float32, from int) (done, width int) {
	if !wide {
		return 0, mostColumns
	}
	n := len(sum)
	columns := (n - from) &^ 7
	if columns == 0 || len(r) == 0 {
		return 0, 8
	}
	return ratioRowsAVX512(unsafe.SliceData(r[from:]), unsafe.SliceData(sum[from:]), unsafe.SliceData(d[from:]), unsafe.SliceData(g[from:]),
		len(r)/n, n, columns, floor), 8
}
