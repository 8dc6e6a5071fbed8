package ranking

import (
	"math"

	"github.com/coppice-ldl/coppice/algorithms/kit/rows"
	"github.com/coppice-ldl/coppice/internal/linalg"
	"github.com/coppice-ldl/coppice/internal/num"
)

// part is some training rows with their kernels, and working memory.
type part struct {
	m         int
	k         [][]float64 // of each kernel, a value for each row and landmark
	low, high []float64   // of each row
	l, r      []float64   // of each row: its number, and what is left of it
	a         []float64   // Σ_o v_o K^o, a value for each row and landmark
	b         []float64   // uᵀK_i, a value for each row and kernel
}

// widths returns δ_o² for a deviation δ of the features.
func widths(c *Config, deviation float64) []float64 {
	w := make([]float64, c.Kernels)
	for o := range w {
		power := float64(10-o) / 2.5
		if c.Widths == widthsPrinted {
			power = -power
		}
		width := float64(num.Exp(float64(power*math.Ln2)) * deviation)
		w[o] = max(width*width, math.SmallestNonzeroFloat64)
	}
	return w
}

// setKernels replaces the first of the matrices k, which holds squared distances, and sets the
// others: exp(-d / δ_o²).
func setKernels(k [][]float64, widths []float64) {
	for o := len(k) - 1; o >= 0; o-- {
		copy(k[o], k[0])
		rows.Gaussian(k[o], widths[o])
	}
}

// setLabels sets the rows' numbers (Eq. 12).
func (p *part) setLabels(q *request) {
	if !q.middles {
		p.predict(p.l, q.labels)
	}
	for i := range p.l {
		if q.middles {
			p.l[i] = float64((p.low[i] + p.high[i]) / 2)
		} else {
			p.l[i] = min(max(p.l[i], p.low[i]), p.high[i])
		}
	}
}

// predict sets dst to uᵀK_i v of each row.
func (p *part) predict(dst []float64, at point) {
	p.project(at.u)
	n := len(p.k)
	for i := range dst {
		dst[i] = dot(p.b[i*n:(i+1)*n], at.v)
	}
}

// project sets b.
func (p *part) project(u []float64) {
	for o, k := range p.k {
		for i := range p.l {
			p.b[i*len(p.k)+o] = dot(k[i*p.m:(i+1)*p.m], u)
		}
	}
}

// combine sets a.
func (p *part) combine(v []float64) {
	for i := range p.a {
		p.a[i] = v[0] * p.k[0][i]
	}
	for o := 1; o < len(v); o++ {
		linalg.AddScaled(p.a, v[o], p.k[o])
	}
}

// residual sets r to l - A u, and adds Aᵀr to right. It returns Σ r².
func (p *part) residual(right, u []float64) float64 {
	for i := range p.r {
		row := p.a[i*p.m : (i+1)*p.m]
		p.r[i] = p.l[i] - dot(row, u)
		linalg.AddScaled(right, p.r[i], row)
	}
	return dot(p.r, p.r)
}

// weights adds Bᵀ(l - B v) to right. It returns the squared residuals.
func (p *part) weights(right []float64, at point) float64 {
	p.project(at.u)
	n := len(p.k)
	for i := range p.r {
		row := p.b[i*n : (i+1)*n]
		p.r[i] = p.l[i] - dot(row, at.v)
		linalg.AddScaled(right, p.r[i], row)
	}
	return dot(p.r, p.r)
}

// squareB adds the products of pairs of BᵀB to dst.
func (p *part) squareB(dst []float64) {
	n := len(p.k)
	for i := range p.r {
		row, to := p.b[i*n:(i+1)*n], dst
		for j, x := range row {
			linalg.AddScaled(to[:j+1], x, row[:j+1])
			to = to[j+1:]
		}
	}
}

// costs returns the squared residuals and the squared distances from the intervals.
func (p *part) costs(at point) (squares, distances float64) {
	p.predict(p.r, at)
	for i, v := range p.r {
		d := p.l[i] - v
		squares = math.FMA(d, d, squares)
		d = min(max(v, p.low[i]), p.high[i]) - v
		distances = math.FMA(d, d, distances)
	}
	return squares, distances
}

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
