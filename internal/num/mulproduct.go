package num

// MulProduct multiplies dst (m×n), element by element, by the product of a (m×k) and b
// (k×n), each sum of which is AddProduct's to a zero. n is 1,024 at the most.
func MulProduct(dst, a, b []float32, k, n int) {
	m := productRows(len(dst), len(a), len(b), k, n)
	if n > productValues {
		panic("num: a product of too many columns")
	}
	if !mulProduct(dst, a, b, m, k, n) {
		mulProductRows(dst, a, b, m, k, n)
	}
}

// productValues is how many values of a product are computed before they are multiplied.
const productValues = 1 << 10

func mulProductRows(dst, a, b []float32, m, k, n int) {
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
