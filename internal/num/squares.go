package num

// SquaresRows is how many rows a panel of Squares has.
const SquaresRows = 16

// Squares sets dst (16) to the squared Euclidean distances Σ_k (x_k - panel_k,i)² between x and
// the 16 rows i of a panel (len(x)×16, column after column). Each is a chain over ascending k:
// the difference, its square and the sum are rounded one by one.
func Squares(dst, panel, x []float64) {
	checkSame(len(dst), SquaresRows)
	checkSame(len(panel), SquaresRows*len(x))
	if !squares(dst, panel, x) {
		squaresGo(dst, panel, x)
	}
}

func squaresGo(dst, panel, x []float64) {
	sum := (*[SquaresRows]float64)(dst)
	clear(sum[:])
	for k, v := range x {
		for i, y := range (*[SquaresRows]float64)(panel[k*SquaresRows:]) {
			d := v - y
			sum[i] += float64(d * d)
		}
	}
}

// AddConstant adds x to each element of v.
func AddConstant(v []float64, x float64) {
	for i := addConstant(v, x); i < len(v); i++ {
		v[i] += x
	}
}

// AddSquares adds (x - y_i)² to each element i of v. The difference, its square and the sum are
// rounded one by one.
func AddSquares(v, y []float64, x float64) {
	checkSame(len(v), len(y))
	done := addSquares(v, y, x)
	addSquaresGo(v[done:], y[done:], x)
}

func addSquaresGo(v, y []float64, x float64) {
	y = y[:len(v)]
	for i := range v {
		d := x - y[i]
		v[i] += float64(d * d)
	}
}
