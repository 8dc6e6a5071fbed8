package num

import (
	"math"
	"unsafe"
)

// The steps of optimisers: plain float32 arithmetic, each operation rounded, in which
// nothing fuses. All their vectors have the same length.

// Momentum takes one step of gradient descent with momentum:
//
//	d = g + decay·x    v = momentum·v + d    x -= rate·v
//
// It reports whether every element of x is finite.
func Momentum(x, v, g []float32, rate, momentum, decay float32) bool {
	checkSame(len(v), len(x))
	checkSame(len(g), len(x))
	n, finite := WholeVectors(len(x)), true
	if Accelerated && n > 0 {
		finite = momentumAVX2(&x[0], &v[0], &g[0], n, rate, momentum, decay)
	}
	return momentumGo(x[n:], v[n:], g[n:], rate, momentum, decay) && finite
}

// AdamFactors are what a step of Adam multiplies and divides by.
type AdamFactors struct {
	Rate, Decay        float32
	Beta1, Rest1       float32 // β1 and 1 - β1
	Beta2, Rest2       float32 // β2 and 1 - β2
	Correct1, Correct2 float32 // 1 - β1^t and 1 - β2^t
	Epsilon            float32
}

// Adam takes one step of Adam (Kingma and Ba 2015, algorithm 1):
//
//	d = g + decay·x    m = β1·m + (1-β1)·d    v = β2·v + (1-β2)·d²
//	x -= rate·(m/(1-β1^t)) / (sqrt(v/(1-β2^t)) + ε)
//
// It reports whether every element of x is finite.
func Adam(x, m, v, g []float32, a *AdamFactors) bool {
	checkSame(len(m), len(x))
	checkSame(len(v), len(x))
	checkSame(len(g), len(x))
	n, finite := WholeVectors(len(x)), true
	if Accelerated && n > 0 {
		finite = adamAVX2(&x[0], &m[0], &v[0], &g[0], n, a)
	}
	return adamGo(x[n:], m[n:], v[n:], g[n:], a) && finite
}

func momentumGo(x, v, g []float32, rate, momentum, decay float32) bool {
	v, g = v[:len(x)], g[:len(x)]
	finite := true
	for i, y := range x {
		d := g[i] + float32(decay*y)
		m := float32(momentum*v[i]) + d
		y -= float32(rate * m)
		v[i], x[i] = m, y
		finite = finite && y-y == 0
	}
	return finite
}

func adamGo(x, m, v, g []float32, a *AdamFactors) bool {
	m, v, g = m[:len(x)], v[:len(x)], g[:len(x)]
	finite := true
	for i, y := range x {
		d := g[i] + float32(a.Decay*y)
		m[i] = float32(a.Beta1*m[i]) + float32(a.Rest1*d)
		v[i] = float32(a.Beta2*v[i]) + float32(a.Rest2*float32(d*d))
		root := float32(math.Sqrt(float64(v[i] / a.Correct2)))
		y -= float32(float32(a.Rate*(m[i]/a.Correct1)) / (root + a.Epsilon))
		x[i] = y
		finite = finite && y-y == 0
	}
	return finite
}

// MomentumRows is Momentum with a gradient of rows of width values that has only some of the rows
// of the parameters: row index[k], ascending, is factor·values[k], and each other one is 0. factor is
// above 0.
func MomentumRows(x, v, values []float32, index []uint32, width int, factor, rate, momentum, decay float32) bool {
	checkSame(len(v), len(x))
	if width <= 0 || len(x)%width != 0 || len(values) != len(index)*width {
		panic("num: rows of another width")
	}
	if n := len(index); n > 0 && int(index[n-1]) >= len(x)/width {
		panicIndex()
	}
	if Accelerated && width%8 == 0 && len(x) > 0 { // rows are whole vectors
		return momentumRowsAVX2(&x[0], &v[0], unsafe.SliceData(values), unsafe.SliceData(index),
			len(x)/width, len(index), width, factor, rate, momentum, decay)
	}
	// Else Momentum takes a piece of a row at a time.
	var piece [64]float32
	finite, k := true, 0
	for first := 0; first < len(x); first += width {
		var given []float32
		if k < len(index) && int(index[k])*width == first {
			given = values[k*width : (k+1)*width]
			k++
		}
		for i := 0; i < width; i += len(piece) {
			g := piece[:min(len(piece), width-i)]
			clear(g)
			if given != nil {
				copy(g, given[i:])
				Scale32(g, factor)
			}
			from, to := first+i, first+i+len(g)
			finite = Momentum(x[from:to], v[from:to], g, rate, momentum, decay) && finite
		}
	}
	return finite
}
