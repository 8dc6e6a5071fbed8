//go:build !purego

package num

import "unsafe"

//go:noescape
func descendAVX2(node, s, t *float32, phi *uint32, splits, n, units int) bool

//go:noescape
func descendFourAVX2(node, s, t *float32, phi *uint32, splits, n, units int) bool

//go:noescape
func descendAVX512(node, s, t *float32, phi *uint32, splits, n, units int) bool

//go:noescape
func ascendAVX2(df, mass, s, t *float32, phi *uint32, splits, n, units int) bool

//go:noescape
func ascendFourAVX2(df, mass, s, t *float32, phi *uint32, splits, n, units int) bool

//go:noescape
func ascendAVX512(df, mass, s, t *float32, phi *uint32, splits, n, units int) bool

// descend does Descend below the root where rows are whole vectors.
func descend(node, s, t []float32, phi []uint32, n int) bool {
	if !accelerated || n%8 != 0 {
		return false
	}
	run := descendAVX2
	switch {
	case wide && n%16 == 0:
		run = descendAVX512
	case n%32 == 0:
		run = descendFourAVX2
	}
	if !run(unsafe.SliceData(node), unsafe.SliceData(s), unsafe.SliceData(t), unsafe.SliceData(phi), len(phi), n, len(s)/n) {
		panicIndex()
	}
	return true
}

// ascend does Ascend where rows are whole vectors.
func ascend(df, mass, s, t []float32, phi []uint32, n int) bool {
	if !accelerated || n%8 != 0 {
		return false
	}
	run := ascendAVX2
	switch {
	case wide && n%16 == 0:
		run = ascendAVX512
	case n%32 == 0:
		run = ascendFourAVX2
	}
	if !run(unsafe.SliceData(df), unsafe.SliceData(mass), unsafe.SliceData(s), unsafe.SliceData(t), unsafe.SliceData(phi), len(phi), n, len(s)/n) {
		panicIndex()
	}
	return true
}
