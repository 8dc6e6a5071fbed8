package lbfgs

// memory holds the last changes of the point (s) and of the gradient (y), the newest last.
type memory struct {
	n     int
	count int
	next  int       // where the next pair goes, in a ring
	s, y  []float64 // pairs×n
	rho   []float64 // pairs: 1 / sᵀy
	scale float64   // sᵀy / yᵀy of the newest pair: the first guess of the inverse Hessian
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
	sy, yy := dot(s, y), dot(y, y)
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
		alpha[i] = rho * dot(s, d)
		add(d, -alpha[i], y)
	}
	for i := range d {
		d[i] *= h.scale
	}
	for i := range h.count {
		s, y, rho := h.pair(i)
		add(d, alpha[i]-float64(rho*dot(y, d)), s)
	}
}

// add adds a·v to d.
func add(d []float64, a float64, v []float64) {
	v = v[:len(d)]
	for i := range d {
		d[i] += float64(a * v[i])
	}
}

// dot returns Σ a·b: four sums of every fourth product, added at the end. The order is part
// of the numerics.
func dot(a, b []float64) float64 {
	var s0, s1, s2, s3 float64
	b = b[:len(a)]
	i := 0
	for ; i+4 <= len(a); i += 4 {
		x, y := a[i:i+4:i+4], b[i:i+4:i+4]
		s0 += float64(x[0] * y[0])
		s1 += float64(x[1] * y[1])
		s2 += float64(x[2] * y[2])
		s3 += float64(x[3] * y[3])
	}
	for ; i < len(a); i++ {
		s0 += float64(a[i] * b[i])
	}
	return (s0 + s1) + (s2 + s3)
}
