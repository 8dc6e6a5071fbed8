//go:build !purego

package num

// halfColumns is how many columns of float32 a narrower block of the widest vectors takes.
const halfColumns = wideColumns / 2

//go:noescape
func addProductHalfAVX512(dst, a, b *float32, m, k, n, ai, at int)
