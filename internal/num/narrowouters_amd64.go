//go:build !purego

package num

import "unsafe"

//go:noescape
func narrowOutersAVX2(dst *float32, first *uint32, rows int, terms *OuterTerm, count int, x *float32, of, width, columns int) bool

// narrowOuters does Outers.Compute of rows of any width, at most 32 columns at a time.
func narrowOuters(dst []float32, first []uint32, terms []OuterTerm, x []float32, width int) bool {
	if !accelerated {
		return false
	}
	for from := 0; from < width; {
		columns := width - from
		if columns >= 8 {
			columns = min(columns&^7, 32)
		}
		if !narrowOutersAVX2(unsafe.SliceData(dst[from:]), unsafe.SliceData(first), len(first), unsafe.SliceData(terms), len(terms),
			unsafe.SliceData(x[from:]), len(x)/width, width, columns) {
			panicIndex()
		}
		from += columns
	}
	return true
}
