//go:build !purego

package num

import "unsafe"

// halfColumns is how many columns of float32 a narrower block of the widest vectors takes.
const halfColumns = wideColumns / 2

//go:noescape
func addProductHalfAVX512(dst, a, b *float32, m, k, n, ai, at int)

//go:noescape
func mulProductHalfAVX512(dst, a, b *float32, m, k, n, ai, at int)

//go:noescape
func mulProductAVX2(dst, a, b *float32, m, k, n, ai, at, columns int)

// mulProduct does MulProduct where rows are whole blocks of the widest vectors, or of four of
// the others.
func mulProduct(dst, a, b []float32, m, k, n int) bool {
	if !accelerated || n%halfColumns != 0 || m == 0 || k == 0 {
		return false
	}
	if !wide {
		mulProductAVX2(unsafe.SliceData(dst), unsafe.SliceData(a), unsafe.SliceData(b), m, k, n, k, 1, n)
		return true
	}
	for at := 0; at < n; at += halfColumns {
		mulProductHalfAVX512(unsafe.SliceData(dst[at:]), unsafe.SliceData(a), unsafe.SliceData(b[at:]), m, k, n, k, 1)
	}
	return true
}
