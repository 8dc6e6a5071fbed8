//go:build !purego

package num

import "unsafe"

//go:noescape
func sumRowsAVX2(dst *float32, there uint64, has *uint16, place *[MostRows]uint32, lists *[MostRows]*float32, groups, width int, zeros *float32)

//go:noescape
func sumRowsAVX512(dst *float32, there uint64, has *uint16, place *[MostRows]uint32, lists *[MostRows]*float32, groups, width int, zeros *float32)

// zeroRow is what is added for a row that is not there.
var zeroRow [1 << 10]float32

// sum does sumGo where rows are whole blocks of four vectors.
func (s *rowSum) sum(dst []float32, lists, width int) bool {
	if !accelerated || width%32 != 0 || width > len(zeroRow) {
		return false
	}
	var values [MostRows]*float32
	for i := range lists {
		values[i] = unsafe.SliceData(s.values[i])
	}
	groups := 1
	for 4*groups < lists {
		groups *= 2
	}
	switch {
	case s.there == 0:
	case wide && width%64 == 0:
		sumRowsAVX512(unsafe.SliceData(dst), s.there, &s.has[0], &s.place[0], &values, groups, width, &zeroRow[0])
	default:
		sumRowsAVX2(unsafe.SliceData(dst), s.there, &s.has[0], &s.place[0], &values, groups, width, &zeroRow[0])
	}
	return true
}

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

//go:noescape
func sumOutersAVX2(dst *float32, first *uint32, rows int, terms *OuterTerm, count int, x *float32, of, width int) bool

// sumOuters does Outers.Compute: rows of whole blocks of eight vectors at once, others at most 32 columns at a time.
func sumOuters(dst []float32, first []uint32, terms []OuterTerm, x []float32, width int) bool {
	if !accelerated {
		return false
	}
	if width%64 == 0 {
		if !sumOutersAVX2(unsafe.SliceData(dst), unsafe.SliceData(first), len(first), unsafe.SliceData(terms), len(terms),
			unsafe.SliceData(x), len(x)/width, width) {
			panicIndex()
		}
		return true
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

//go:noescape
func narrowOutersAVX2(dst *float32, first *uint32, rows int, terms *OuterTerm, count int, x *float32, of, width, columns int) bool
