package ranking

import "math"

// point is what predictions depend on.
type point struct{ u, v []float64 }

func newPoint(m, n int) point { return point{make([]float64, m), make([]float64, n)} }

func (p point) set(other point) {
	copy(p.u, other.u)
	copy(p.v, other.v)
}

// dot returns Σ a·b: eight chains over every eighth product, added at the end.
func dot(a, b []float64) float64 {
	var s [8]float64
	b = b[:len(a)]
	i := 0
	for ; i+8 <= len(a); i += 8 {
		x, y := a[i:i+8:i+8], b[i:i+8:i+8]
		s[0] = math.FMA(x[0], y[0], s[0])
		s[1] = math.FMA(x[1], y[1], s[1])
		s[2] = math.FMA(x[2], y[2], s[2])
		s[3] = math.FMA(x[3], y[3], s[3])
		s[4] = math.FMA(x[4], y[4], s[4])
		s[5] = math.FMA(x[5], y[5], s[5])
		s[6] = math.FMA(x[6], y[6], s[6])
		s[7] = math.FMA(x[7], y[7], s[7])
	}
	for ; i < len(a); i++ {
		s[0] = math.FMA(a[i], b[i], s[0])
	}
	return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]))
}

// addScaled adds s·v to dst.
func addScaled(dst []float64, s float64, v []float64) {
	v = v[:len(dst)]
	for i := range dst {
		dst[i] = math.FMA(s, v[i], dst[i])
	}
}

// distance returns ‖a - b‖.
func distance(a, b []float64) float64 {
	sum := 0.0
	for i, x := range a {
		d := x - b[i]
		sum = math.FMA(d, d, sum)
	}
	return math.Sqrt(sum)
}

// request says which sums an alternation needs, and at which point.
type request struct {
	stage       uint8
	now, labels point
	middles     bool // the numbers of rows are the middles of their intervals
}
