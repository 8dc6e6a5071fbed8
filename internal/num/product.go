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
// widens it. r, d and g have rows as long as w, each of which takes all of w.
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
