//go:build !purego

package num

import "unsafe"

//go:noescape
func ratiosAVX2(r *float32, sum *float64, d, below *float32, n int, weight, floor float32) int

// ratios does the start of Ratios and returns its length: until the end, less what is
// no whole vector, or a vector with a ratio that is not finite.
func ratios(r []float32, sum []float64, d, g []float32, weight, floor float32) int {
	if !accelerated {
		return 0
	}
	return ratiosAVX2(unsafe.SliceData(r), unsafe.SliceData(sum), unsafe.SliceData(d), unsafe.SliceData(g),
		len(r)&^(ratioLanes-1), weight, floor)
}

//go:noescape
func ratioRowsAVX2(r *float32, sum *float64, d, below *float32, rows, n, columns int, floor float32, work *ratioWork) int

//go:noescape
func ratioRowsAVX512(r *float32, sum *float64, d, below *float32, rows, n, columns int, floor float32) int

// ratioRows does RatioRows from the column from on, in whole vectors, until one has a
// ratio that is not finite. It returns the number of columns done, and how many are
// to be done otherwise before the next vector.
func ratioRows(r []float32, sum []float64, d, g []float32, floor float32, from int) (done, width int) {
	if !accelerated {
		return 0, mostColumns
	}
	lanes := ratioLanes
	if wide {
		lanes = 2 * ratioLanes
	}
	n := len(sum)
	columns := (n - from) &^ (lanes - 1)
	if columns == 0 || len(r) == 0 {
		return 0, lanes
	}
	rr, s, dd, gg := unsafe.SliceData(r[from:]), unsafe.SliceData(sum[from:]), unsafe.SliceData(d[from:]), unsafe.SliceData(g[from:])
	if wide {
		return ratioRowsAVX512(rr, s, dd, gg, len(r)/n, n, columns, floor), lanes
	}
	var work ratioWork
	return ratioRowsAVX2(rr, s, dd, gg, len(r)/n, n, columns, floor, &work), lanes
}

// ratioTerms is how many vectors of a column go through a part of the logarithm at a time.
const ratioTerms = 32

// ratioWork is what these parts leave to each other, four vectors of each, and room to align
// them.
type ratioWork [ratioTerms*4*ratioLanes + ratioLanes]float64
