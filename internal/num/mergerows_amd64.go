//go:build !purego

package num

import "unsafe"

//go:noescape
func mergeRowsAVX2(dst *float32, index *uint32, a, b *float32, aIndex, bIndex *uint32, aRows, bRows, width, room int) (i, j, n int)

//go:noescape
func mergeRowsAVX512(dst *float32, index *uint32, a, b *float32, aIndex, bIndex *uint32, aRows, bRows, width, room int) (i, j, n int)

// mergeRows does the start of MergeRows, up to the end of a list at the most, and
// returns how many rows of a, b and dst that took.
func mergeRows(dst []float32, index []uint32, a, b []float32, aIndex, bIndex []uint32, width int) (i, j, n int) {
	if !accelerated || width == 0 || width%8 != 0 {
		return 0, 0, 0
	}
	run := mergeRowsAVX2
	if wide && width%64 == 0 {
		run = mergeRowsAVX512
	}
	return run(unsafe.SliceData(dst), unsafe.SliceData(index), unsafe.SliceData(a), unsafe.SliceData(b),
		unsafe.SliceData(aIndex), unsafe.SliceData(bIndex), len(aIndex), len(bIndex), width, len(index))
}
