package lbfgs

import "github.com/coppice-ldl/coppice/internal/num"

// pairs is how many changes of point and gradient the method remembers.
const pairs = 10

// memory holds the last changes of the point (s) and of the gradient (y), the newest last.
type memory struct {
	n     int
	count int
	next  int       // where the next pair goes, in a ring
	s, y  []float64 // pairs×n
	rho   []float64 // pairs: 1 / sᵀy
	scale float64   // sᵀy / yᵀy of the newest pair, the first guess of the inverse Hessian; 0 before the first pair
}

func newMemory(n int) memory {
	return memory{n: n, s: make([]float64, pairs*n), y: make([]float64, pairs*n), rho: make([]float64, pairs)}
}

func (h *memory) forget() { h.count, h.next = 0, 0 }

// pair returns pair i, where 0 is the oldest.
func (h *memory) pair(i int) (s, y []float64, rho float64) {
	k := (h.next - h.count + i + pairs) % pairs
	return h.s[k*h.n : (k+1)*h.n], h.y[k*h.n : (k+1)*h.n], h.rho[k]
}

// curvature is the least sᵀy / yᵀy at which a pair is remembered: with less, rounding decides.
const curvature = 2.2e-16

// remember adds the change from point x0 with gradient g0 to point x1 with gradient g1.
func (h *memory) remember(x0, g0, x1, g1 []float64) {
	s, y := h.s[h.next*h.n:(h.next+1)*h.n], h.y[h.next*h.n:(h.next+1)*h.n]
	if h.count == pairs {
		h.count-- // the place of the oldest is taken
	}
	for i := range s {
		s[i], y[i] = x1[i]-x0[i], g1[i]-g0[i]
	}
	sy, yy := num.Dot64(s, y), num.Dot64(y, y)
	if !(sy > curvature*yy) {
		return
	}
	h.rho[h.next], h.scale = 1/sy, sy/yy
	h.next, h.count = (h.next+1)%pairs, h.count+1
}

// direction sets d to -H g, with H the method's estimate of the inverse Hessian: the two loops
// of Nocedal 1980.
func (h *memory) direction(d, g []float64) {
	for i, v := range g {
		d[i] = -v
	}
	if h.count == 0 {
		return
	}
	var alpha [pairs]float64
	for i := h.count - 1; i >= 0; i-- {
		s, y, rho := h.pair(i)
		alpha[i] = rho * num.Dot64(s, d)
		num.AddScaled64(d, -alpha[i], y)
	}
	for i := range d {
		d[i] *= h.scale
	}
	for i := range h.count {
		s, y, rho := h.pair(i)
		num.AddScaled64(d, alpha[i]-float64(rho*num.Dot64(y, d)), s)
	}
}
