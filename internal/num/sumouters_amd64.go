//go:build !purego

package num

import "unsafe"

//go:noescape
func sumOutersAVX2(dst *float32, index *uint32, touched *uint64, words int, head *uint32, terms *OuterTerm, count int, x *float32, of, width int) int

// sumOuters does SumOuters where rows are whole blocks of eight vectors.
func sumOuters(dst []float32, index []uint32, touched []uint64, head []uint32, terms []OuterTerm, x []float32, width int) (int, bool) {
	if !accelerated || width%64 != 0 || len(touched) == 0 {
		return 0, false
	}
	n := sumOutersAVX2(unsafe.SliceData(dst), unsafe.SliceData(index), unsafe.SliceData(touched), len(touched), unsafe.SliceData(head),
		unsafe.SliceData(terms), len(terms), unsafe.SliceData(x), len(x)/width, width)
	if n < 0 {
		panicIndex()
	}
	return n, true
}
