package num

import "math"

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
	done, finite := momentumStart(x, v, g, rate, momentum, decay)
	return momentumGo(x[done:], v[done:], g[done:], rate, momentum, decay) && finite
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
	done, finite := adamStart(x, m, v, g, a)
	return adamGo(x[done:], m[done:], v[done:], g[done:], a) && finite
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
