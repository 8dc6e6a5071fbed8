package speed

// sums is how many sums fma32 and fma64 keep that do not wait for each other.
const sums = 12

// vectors are the loops with which a core's roof is measured, with one kind of vectors.
// All kinds give the same values.
type vectors struct {
	name             string
	lanes32, lanes64 int // elements of a vector
	// fma32 begins with sums·lanes32 zeros, sets each x to x/2 + 1 for so many rounds,
	// at least one, and sets out (lanes32) to the sums by lane.
	fma32 func(rounds int, out []float32)
	fma64 func(rounds int, out []float64)
	// stream sets y = y + a·x; both have the same length, a multiple of 64.
	stream func(y, x []float32, a float32)
}

// portable are the loops in Go, for processors without assembly here: their roof is
// what Go reaches, which is below the processor's.
var portable = vectors{name: "portable Go", lanes32: 1, lanes64: 1, fma32: fmaGo[float32], fma64: fmaGo[float64], stream: streamGo}

func fmaGo[T float32 | float64](rounds int, out []T) {
	var a, b, c, d, e, f, g, h, i, j, k, l T
	for range rounds {
		a, b, c, d = a*0.5+1, b*0.5+1, c*0.5+1, d*0.5+1
		e, f, g, h = e*0.5+1, f*0.5+1, g*0.5+1, h*0.5+1
		i, j, k, l = i*0.5+1, j*0.5+1, k*0.5+1, l*0.5+1
	}
	out[0] = a + b + c + d + e + f + g + h + i + j + k + l
}

func streamGo(y, x []float32, a float32) {
	x = x[:len(y)]
	for i := range y {
		y[i] += a * x[i]
	}
}
