//go:build !purego

package num

import "unsafe"

//go:noescape
func addProductAVX2(dst, a, b *float32, m, k, n, ai, at, columns int)

//go:noescape
func addProductAVX512(dst, a, b *float32, m, k, n, ai, at, columns int)

//go:noescape
func widenFourAVX2(tile *float64, b *float32, k, stride int)

//go:noescape
func addTileAVX2(dst, a, tile *float64, m, k, n, columns, stride int, ahead *float32, step int)

//go:noescape
func addTurnedAVX512(dst, a *float64, turned *float32, m, k, n, stride int, ahead *float32, step int)

//go:noescape
func addTurnedAVX2(dst, a *float64, turned *float32, m, k, n, stride int, ahead *float32, skip, step int)

//go:noescape
func turnAVX512(turned, b *float32, k, columns, stride int)

//go:noescape
func turnAVX2(turned, b *float32, k, columns, stride int)

//go:noescape
func widenAVX2(wide *float64, v *float32, n int)

//go:noescape
func transpose64AVX2(dst, m *float64, rows, n int)

//go:noescape
func quotientsAVX512(r *float64, w, d, below *float32, rows, n int, floor float32)

//go:noescape
func quotientsAVX2(r *float64, w, d, below *float32, rows, n int, floor float32)

// wideColumns is how many columns of float32 a block of the widest vectors takes.
const wideColumns = 64

// wideRows is how many rows of a product the widest vectors take at a time.
const wideRows = 6

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
	if wide && n-done >= halfColumns {
		addProductHalfAVX512(&dst[done], &a[0], &b[done], m, k, n, ai, at)
		done += halfColumns
	}
	if done < n {
		addProductAVX2(&dst[done], &a[0], &b[done], m, k, n, ai, at, n-done)
	}
}

// addProduct64T does AddProduct64T where it can: vectors run along the rows of b, and the
// transposing of b along eight of its columns.
func addProduct64T(dst, a []float64, b []float32, k, stride int, next []float32, tile *Tile) bool {
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
			columns, from := tileWidth(n-j), &b[j*stride+t]
			ahead := from // only fetched
			if at := j*stride + t; at < len(next) {
				ahead = &next[at]
			}
			to, x := &dst[j], &a[t]
			step := 4*columns*stride/(terms*groups(m, columns)) + 1
			switch columns {
			case 4:
				widenFourAVX2(&tile[0], from, terms, stride)
				addTileAVX2(to, x, &tile[0], m, terms, n, columns, stride, ahead, step)
			case 16:
				if m > 3 {
					addTurned(dst[j:], a[t:], tile.turn(from, terms, columns, stride), m, terms, n, stride, ahead, step)
				} else {
					tile.widen(from, terms, columns, stride)
					addTileAVX2(to, x, &tile[0], m, terms, n, columns, stride, ahead, step)
				}
			default:
				addTurnedAVX512(to, x, tile.turn(from, terms, columns, stride), m, terms, n, stride, ahead, step)
			}
			j += columns
		}
	}
	return true
}

// addTurned adds the products of 16 columns that are widened on the way, of m rows: groups of
// up to six, all about as large.
func addTurned(dst, a []float64, turned *float32, m, k, n, stride int, ahead *float32, step int) {
	all := (m + wideRows - 1) / wideRows
	step = step*groups(m, 16)/(2*all) + 1
	for group := range all {
		rows := (m + all - group - 1) / (all - group)
		addTurnedAVX2(&dst[0], &a[0], turned, rows, k, n, stride, ahead, 2*group*k*step, step)
		if m -= rows; m > 0 {
			dst, a = dst[rows*n:], a[rows*stride:]
		}
	}
}

// turn sets the end of the tile to the transpose of the first k columns of b, and returns
// it.
func (tile *Tile) turn(b *float32, k, columns, stride int) *float32 {
	n := (k + 7) &^ 7 * columns
	turned := (*float32)(unsafe.Pointer(&tile[n/2]))
	if wide {
		turnAVX512(turned, b, k, columns, stride)
	} else {
		turnAVX2(turned, b, k, columns, stride)
	}
	return turned
}

// widen sets the tile to the transpose of the first k columns of b, widened. What widens
// reads ahead of what it writes.
func (tile *Tile) widen(b *float32, k, columns, stride int) {
	widenAVX2(&tile[0], tile.turn(b, k, columns, stride), (k+7)&^7*columns)
}

// groups returns how often a product of m rows goes through a tile.
func groups(m, columns int) int {
	if columns == tileColumns {
		return (m + wideRows - 1) / wideRows
	}
	return (m + 2) / 3
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

// transpose64 does the first rows of Transpose64 and returns how many.
func transpose64(dst, m []float64, rows, n int) int {
	if !accelerated || rows < 4 || n%4 != 0 {
		return 0
	}
	transpose64AVX2(&dst[0], &m[0], rows, n)
	return rows &^ 3
}

// quotients does all of Quotients, or nothing, and returns how many.
func quotients(r []float64, w, d, g []float32, floor float32) int {
	n := wholeVectors(len(w))
	if n < len(w) || n == 0 || len(r) == 0 {
		return 0
	}
	if wide && n%16 == 0 {
		quotientsAVX512(&r[0], &w[0], &d[0], &g[0], len(r)/n, n, floor)
	} else {
		quotientsAVX2(&r[0], &w[0], &d[0], &g[0], len(r)/n, n, floor)
	}
	return len(r)
}

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

//go:noescape
func transposeAVX2(dst *float32, to int, src *float32, from, rows, columns int)

// transposed does the first rows and columns of Transpose32 and returns how many.
func transposed(dst []float32, to int, src []float32, from, rows, columns int) (r, c int) {
	r, c = wholeVectors(rows), columns&^3
	if r == 0 || c == 0 {
		return 0, 0
	}
	transposeAVX2(unsafe.SliceData(dst), to, unsafe.SliceData(src), from, r, c)
	return r, c
}
