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
