package num

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
	if stride <= 0 || k < 0 || k > stride || len(a)%stride != 0 || len(b)%stride != 0 || len(dst) != len(a)/stride*(len(b)/stride) {
		panic("num: a product of matrices whose shapes differ")
	}
	if !addProduct64T(dst, a, b, k, stride, next, tile) {
		addProduct64TGo(dst, a, b, k, stride)
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
	for at := quotients(r, w, d, g, floor); at < len(r); at += n {
		quotientsGo(r[at:at+n], w, d[at:at+n], g[at:at+n], floor)
	}
}

// Transpose64 sets dst to the transpose of m, whose rows have n values.
func Transpose64(dst, m []float64, n int) {
	checkSame(len(dst), len(m))
	if n <= 0 || len(m)%n != 0 {
		panic("num: a matrix of incomplete rows")
	}
	rows := len(m) / n
	for i := transpose64(dst, m, rows, n); i < rows; i++ {
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
	if mulProduct(dst, a, b, m, k, n) {
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
	r, c := transposed(dst, to, src, from, rows, columns)
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
