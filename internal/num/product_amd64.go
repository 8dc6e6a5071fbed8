//go:build !purego

package num

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

//go:noescape
func addProductAVX2(dst, a, b *float32, m, k, n, ai, at, columns int)

//go:noescape
func addProductAVX512(dst, a, b *float32, m, k, n, ai, at, columns int)

//go:noescape
func addTileAVX512(dst, a, tile *float64, m, k, n, stride int, ahead uintptr, step int)

//go:noescape
func widenFourAVX2(tile *float64, b *float32, k, stride int)

//go:noescape
func addTileAVX2(dst, a, tile *float64, m, k, n, columns, stride int, ahead uintptr, step int)

//go:noescape
func turnAVX2(turned, b *float32, k, columns, stride int)

//go:noescape
func widenAVX2(wide *float64, v *float32, n int)

//go:noescape
func quotientsAVX2(r *float64, w, d, below *float32, n int, floor float32)

// wide tells whether the products take vectors of 64 bytes, which gain more than a
// sixth: see BENCHMARKS.md.
var wide = accelerated && cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL

// wideColumns is how many columns of float32 a block of these takes.
const wideColumns = 64

func addProduct(dst, a, b []float32, m, k, n, ai, at int) {
	if !accelerated {
		addProductGo(dst, a, b, m, k, n, ai, at)
		return
	}
	if m == 0 || k == 0 {
		return
	}
	done := 0
	if wide && n >= wideColumns {
		done = n &^ (wideColumns - 1)
		addProductAVX512(&dst[0], &a[0], &b[0], m, k, n, ai, at, done)
	}
	if done < n {
		addProductAVX2(&dst[done], &a[0], &b[done], m, k, n, ai, at, n-done)
	}
}

// addProduct64T does AddProduct64T where it can: vectors run along the rows of b, and the
// transposing of b along eight of its columns. A leaf update's next product has its b right
// behind this one's, and it is on its way to the cache meanwhile.
func addProduct64T(dst []float64, width int, a []float64, b []float32, k, stride int, tile *Tile) bool {
	m, n := len(a)/stride, len(b)/stride
	if !accelerated || n%4 != 0 || stride%8 != 0 {
		return false
	}
	if k == 0 {
		return true
	}
	for t := 0; t < k; t += tileTerms {
		terms := min(tileTerms, k-t)
		for j := 0; j < n; {
			columns, from := tileWidth(n-j), &b[j*stride+t]
			ahead := uintptr(unsafe.Pointer(from)) + uintptr(4*len(b)) // only fetched, whatever is there
			step := 4*columns*stride/(terms*((m+2)/3)) + 1 // 3 rows at a time, or more
			if columns == 4 {
				widenFourAVX2(&tile.wide[0], from, terms, stride)
			} else {
				turnAVX2(&tile.turned[0], from, terms, columns, stride)
				widenAVX2(&tile.wide[0], &tile.turned[0], terms*columns)
			}
			if columns == tileColumns {
				addTileAVX512(&dst[j], &a[t], &tile.wide[0], m, terms, width, stride, ahead, step)
			} else {
				addTileAVX2(&dst[j], &a[t], &tile.wide[0], m, terms, width, columns, stride, ahead, step)
			}
			j += columns
		}
	}
	return true
}

// tileWidth returns how many of n columns a tile takes next.
func tileWidth(n int) int {
	switch {
	case wide && n >= tileColumns:
		return tileColumns
	case n >= 16:
		return 16
	}
	return 4
}

// quotients does the start of Quotients and returns its length.
func quotients(r []float64, w, d, g []float32, floor float32) int {
	n := wholeVectors(len(r))
	if n > 0 {
		quotientsAVX2(unsafe.SliceData(r), unsafe.SliceData(w), unsafe.SliceData(d), unsafe.SliceData(g), n, floor)
	}
	return n
}
