//go:build !purego

package num

import "unsafe"

//go:noescape
func addProductAVX2(dst, a, b *float32, m, k, n, ai, at int)

//go:noescape
func addTileAVX2(dst, a, tile *float64, m, k, n, columns, stride int)

//go:noescape
func widenAVX2(tile *float64, b *float32, k, columns, stride int)

//go:noescape
func quotientsAVX2(r *float64, w, d, below *float32, n int, floor float32)

func addProduct(dst, a, b []float32, m, k, n, ai, at int) {
	if !accelerated {
		addProductGo(dst, a, b, m, k, n, ai, at)
		return
	}
	if m > 0 && k > 0 {
		addProductAVX2(unsafe.SliceData(dst), unsafe.SliceData(a), unsafe.SliceData(b), m, k, n, ai, at)
	}
}

// addProduct64T does AddProduct64T where it can: vectors run along four rows of b, and
// the transposing of b along eight of its columns.
func addProduct64T(dst, a []float64, b []float32, k, stride int, tile *Tile) bool {
	m, n := len(a)/stride, len(b)/stride
	if !accelerated || n%4 != 0 || stride%8 != 0 {
		return false
	}
	if m == 0 || k == 0 {
		return true
	}
	for t := 0; t < k; t += tileTerms {
		terms := min(tileTerms, k-t)
		for j := 0; j < n; {
			columns := tileColumns
			if j+columns > n {
				columns = 4
			}
			widenAVX2(&tile[0], &b[j*stride+t], terms, columns, stride)
			addTileAVX2(&dst[j], &a[t], &tile[0], m, terms, n, columns, stride)
			j += columns
		}
	}
	return true
}

// quotients does the start of Quotients and returns its length.
func quotients(r []float64, w, d, g []float32, floor float32) int {
	n := wholeVectors(len(r))
	if n > 0 {
		quotientsAVX2(unsafe.SliceData(r), unsafe.SliceData(w), unsafe.SliceData(d), unsafe.SliceData(g), n, floor)
	}
	return n
}
