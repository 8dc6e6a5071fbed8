package num

// The kernels of trees that many rows go down side by side: slices of one value for
// each row. Lanes run across rows, so a row's bits are what it has alone.

// Mul32 multiplies dst by a, element by element. Both have the same length.
func Mul32(dst, a []float32) {
	checkSame(len(dst), len(a))
	done := mul32(dst, a)
	mul32Go(dst[done:], a[done:])
}

// Ratios sets r to weight·d/g, with g not below floor, which is above 0, and adds
// d·ln(d/g) to sum in float64 where d > 0: the terms of a K-L divergence in nats.
func Ratios(r []float32, sum []float64, d, g []float32, weight, floor float32) {
	n := len(r)
	checkSame(len(sum), n)
	checkSame(len(d), n)
	checkSame(len(g), n)
	for at := 0; at < n; {
		at += ratios(r[at:], sum[at:], d[at:], g[at:], weight, floor)
		end := min(n, at+ratioLanes) // too few for a vector, or one that is not finite
		ratiosGo(r[at:end], sum[at:end], d[at:end], g[at:end], weight, floor)
		at = end
	}
}

// ratioLanes is how many ratios a vector has.
const ratioLanes = 4

func mul32Go(dst, a []float32) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] *= a[i]
	}
}

func ratiosGo(r []float32, sum []float64, d, g []float32, weight, floor float32) {
	sum, d, g = sum[:len(r)], d[:len(r)], g[:len(r)]
	for i, x := range d {
		y := max(g[i], floor)
		r[i] = weight * x / y
		if x > 0 {
			sum[i] += float64(float64(x) * Log(float64(x)/float64(y)))
		}
	}
}
