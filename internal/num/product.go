package num

import "unsafe"

// AddProduct adds the product of a (m×k) and b (k×n), row-major, to dst (m×n):
// dst[i,j] = fma(a[i,t], b[t,j], dst[i,j]) for t = 0, 1, ... in order, where n is
// the width of b and k the number of its rows.
func AddProduct(dst, a, b []float32, k, n int) {
	m := productRows(len(dst), len(a), len(b), k, n)
	addProduct(dst, a, b, m, k, n, k, 1)
}

// AddProductT is AddProduct of a's transpose: a is k×m, and dst += aᵀb.
func AddProductT(dst, a, b []float32, k, n int) {
	m := productRows(len(dst), len(a), len(b), k, n)
	addProduct(dst, a, b, m, k, n, 1, m)
}

// productRows returns m, the rows of an m×n product of matrices of these lengths.
func productRows(dst, a, b, k, n int) int {
	if n <= 0 || k < 0 || dst%n != 0 || a != dst/n*k || b != k*n {
		panic("num: a product of matrices whose shapes differ")
	}
	return dst / n
}

// The tile of AddProduct64T: so many terms of a sum, of so many sums of a row.
const (
	tileTerms   = 64
	tileColumns = 32
)

// Tile is working memory of AddProduct64T.
type Tile [tileTerms * tileColumns]float64

// AddProduct64T adds the product of a (m×stride) and the transpose of b (n×stride),
// of the first k columns of both, to dst (m×n): dst[i,j] += a[i,t]·b[j,t] for t = 0,
// 1, ..., k-1 in order, the product exact and the sum rounded once. The values of a
// are float32's. Meanwhile next, which is read after b, is fetched to the cache.
func AddProduct64T(dst, a []float64, b []float32, k, stride int, next []float32, tile *Tile) {
	if stride <= 0 || k < 0 || k > stride || len(a)%stride != 0 || len(b)%stride != 0 ||
		len(dst) != len(a)/stride*(len(b)/stride) {
		panic("num: a product of matrices whose shapes differ")
	}
	if m, n := len(a)/stride, len(b)/stride; !Accelerated || n%4 != 0 || stride%8 != 0 {
		addProduct64TGo(dst, a, b, k, stride)
	} else if m > 0 && k > 0 {
		addProduct64T(dst, a, b, m, n, k, stride, next, tile)
	}
}

// Quotients sets r to w·d/g in float32, with g not below floor, which is above 0, and
// widens it. r, d and g have rows as long as w, and each row takes all of w.
func Quotients(r []float64, w, d, g []float32, floor float32) {
	n := len(w)
	checkSame(len(d), len(r))
	checkSame(len(g), len(r))
	if n == 0 || len(r)%n != 0 {
		panic("num: a matrix of incomplete rows")
	}
	if !Accelerated || n%8 != 0 || len(r) == 0 {
		for at := 0; at < len(r); at += n {
			quotientsGo(r[at:at+n], w, d[at:at+n], g[at:at+n], floor)
		}
		return
	}
	if wide && n%16 == 0 {
		quotientsAVX512(&r[0], &w[0], &d[0], &g[0], len(r)/n, n, floor)
	} else {
		quotientsAVX2(&r[0], &w[0], &d[0], &g[0], len(r)/n, n, floor)
	}
}

// Transpose64 sets dst to the transpose of m, whose rows have n values.
func Transpose64(dst, m []float64, n int) {
	checkSame(len(dst), len(m))
	if n <= 0 || len(m)%n != 0 {
		panic("num: a matrix of incomplete rows")
	}
	rows, done := len(m)/n, 0
	if Accelerated && rows >= 4 && n%4 == 0 {
		transpose64AVX2(&dst[0], &m[0], rows, n)
		done = rows &^ 3
	}
	for i := done; i < rows; i++ {
		for j, x := range m[i*n : (i+1)*n] {
			dst[j*rows+i] = x
		}
	}
}

// MulProduct multiplies dst (m×n), element by element, by the product of a (m×k) and b
// (k×n). Each sum of the product is AddProduct's to a zero. n is 1,024 at the most.
func MulProduct(dst, a, b []float32, k, n int) {
	m := productRows(len(dst), len(a), len(b), k, n)
	if n > productValues {
		panic("num: a product of too many columns")
	}
	if Accelerated && n%halfColumns == 0 && m > 0 && k > 0 {
		if !wide {
			mulProductAVX2(unsafe.SliceData(dst), unsafe.SliceData(a), unsafe.SliceData(b), m, k, n, k, 1, n)
			return
		}
		for at := 0; at < n; at += halfColumns {
			mulProductHalfAVX512(unsafe.SliceData(dst[at:]), unsafe.SliceData(a), unsafe.SliceData(b[at:]), m, k, n, k, 1)
		}
		return
	}
	var values [productValues]float32
	most := len(values) / n
	for from := 0; from < m; from += most {
		rows := min(most, m-from)
		sums := values[:rows*n]
		clear(sums)
		addProduct(sums, a[from*k:(from+rows)*k], b, rows, k, n, k, 1)
		Mul32(dst[from*n:(from+rows)*n], sums)
	}
}

// productValues is how many values of a product are computed before they are multiplied.
const productValues = 1 << 10

// Transpose32 sets dst[j·to+i] to src[i·from+j] for all i below rows and j below columns:
// the transpose of a matrix that stands in rows of from values, in rows of to values.
func Transpose32(dst []float32, to int, src []float32, from, rows, columns int) {
	if rows <= 0 || columns <= 0 {
		return
	}
	if from < columns || to < rows || len(src) < (rows-1)*from+columns || len(dst) < (columns-1)*to+rows {
		panic("num: a matrix shorter than its shape")
	}
	r, c := WholeVectors(rows), columns&^3
	if Accelerated && r > 0 && c > 0 {
		transposeAVX2(unsafe.SliceData(dst), to, unsafe.SliceData(src), from, r, c)
	} else {
		r, c = 0, 0
	}
	transposeGo(dst, to, src, from, 0, r, c, columns)
	transposeGo(dst, to, src, from, r, rows, 0, columns)
}

// transposeGo does the rows [r, rows) and columns [c, columns).
func transposeGo(dst []float32, to int, src []float32, from, r, rows, c, columns int) {
	for i := r; i < rows; i++ {
		for j := c; j < columns; j++ {
			dst[j*to+i] = src[i*from+j]
		}
	}
}

// The portable products: what the assembly must equal bit for bit.

// addProductGo finds a[i,t] at a[i·ai + t·at].
func addProductGo(dst, a, b []float32, m, k, n, ai, at int) {
	for i := range m {
		row := dst[i*n : i*n+n]
		for t := range k {
			mulAddRow(row, a[i*ai+t*at], b[t*n:t*n+n])
		}
	}
}

func addProduct64TGo(dst, a []float64, b []float32, k, stride int) {
	n := len(b) / stride
	for i := range len(a) / stride {
		x, row := a[i*stride:i*stride+k], dst[i*n:i*n+n]
		j := 0
		for ; j+4 <= n; j += 4 {
			addDots64(row[j:j+4], x, b[j*stride:], stride)
		}
		for ; j < n; j++ {
			y, sum := b[j*stride:j*stride+k], row[j]
			for t, v := range x {
				sum += float64(v * float64(y[t])) // exact
			}
			row[j] = sum
		}
	}
}

// addDots64 adds the products of x with four rows of b to sums.
func addDots64(sums, x []float64, b []float32, stride int) {
	n := len(x)
	b0, b1, b2, b3 := b[:n], b[stride:stride+n], b[2*stride:2*stride+n], b[3*stride:3*stride+n]
	s0, s1, s2, s3 := sums[0], sums[1], sums[2], sums[3]
	for t, v := range x {
		s0 += float64(v * float64(b0[t])) // exact
		s1 += float64(v * float64(b1[t]))
		s2 += float64(v * float64(b2[t]))
		s3 += float64(v * float64(b3[t]))
	}
	sums[0], sums[1], sums[2], sums[3] = s0, s1, s2, s3
}

func quotientsGo(r []float64, w, d, g []float32, floor float32) {
	w, d, g = w[:len(r)], d[:len(r)], g[:len(r)]
	for i := range r {
		r[i] = float64(w[i] * d[i] / max(g[i], floor))
	}
}

// wideColumns is how many columns of float32 a block of the widest vectors takes.
const wideColumns = 64

// wideRows is how many rows of a product the widest vectors take at a time.
const wideRows = 6

func addProduct(dst, a, b []float32, m, k, n, ai, at int) {
	if !Accelerated {
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

// addProduct64T is AddProduct64T by vectors, which run along the rows of b; the
// transposing of b runs along eight of its columns.
func addProduct64T(dst, a []float64, b []float32, m, n, k, stride int, next []float32, tile *Tile) {
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

// halfColumns is how many columns of float32 a narrower block of the widest vectors takes.
const halfColumns = wideColumns / 2
