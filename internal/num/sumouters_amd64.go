//go:build !purego

package num

import "unsafe"

//go:noescape
func sumOutersAVX2(dst *float32, first *uint32, rows int, terms *OuterTerm, count int, x *float32, of, width int) bool

// sumOuters does Outers.Compute where rows are whole blocks of eight vectors.
func sumOuters(dst []float32, first []uint32, terms []OuterTerm, x []float32, width int) bool {
	if !accelerated || width%64 != 0 {
		return false
	}
	if !sumOutersAVX2(unsafe.SliceData(dst), unsafe.SliceData(first), len(first), unsafe.SliceData(terms), len(terms),
		unsafe.SliceData(x), len(x)/width, width) {
		panicIndex()
	}
	return true
}
