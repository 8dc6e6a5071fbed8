package ldlf

import "math"

// reference is the paper's forest in float64, written from the equations: the slow
// twin of the kernels. It shares no code with them.
type reference struct {
	trees, depth, outputs, labels, features int
	bias                                    bool
	phi                                     []uint32
	theta                                   []float64 // (features+bias)×outputs
	q                                       []float64 // trees×leaves×labels
}

func newReference(z sizes, phi []uint32, theta, q []float32) *reference {
	return &reference{
		trees: z.trees, depth: z.depth, outputs: z.outputs, labels: z.labels, features: z.features, bias: z.bias,
		phi: phi, theta: widened(theta), q: widened(q),
	}
}

func widened(v []float32) []float64 {
	w := make([]float64, len(v))
	for i, x := range v {
		w[i] = float64(x)
	}
	return w
}

func (r *reference) leaves() int { return 1 << (r.depth - 1) }

// output is f_j(x; Θ).
func (r *reference) output(x []float64, j int) float64 {
	f := 0.0
	for i, v := range x {
		f += v * r.theta[i*r.outputs+j]
	}
	if r.bias {
		f += r.theta[r.features*r.outputs+j]
	}
	return f
}

// split is s_n(x; Θ) = σ(f_φ(n)(x; Θ)) of tree k.
func (r *reference) split(x []float64, k, n int) float64 {
	return 1 / (1 + math.Exp(-r.output(x, int(r.phi[k*(r.leaves()-1)+n]))))
}

// leaf is p(ℓ|x; Θ) of Eq. 1: the path to leaf ℓ, from the root, is its number's
// bits, 0 for left.
func (r *reference) leaf(x []float64, k, l int) float64 {
	p, n := 1.0, 0
	for level := r.depth - 2; level >= 0; level-- {
		s := r.split(x, k, n)
		if l>>level&1 == 0 {
			p, n = p*s, 2*n+1
		} else {
			p, n = p*(1-s), 2*n+2
		}
	}
	return p
}

// tree is g_c(x; Θ, T) of Eq. 2, over the leaves [from, to).
func (r *reference) tree(x []float64, k, c, from, to int) float64 {
	g := 0.0
	for l := from; l < to; l++ {
		g += r.leaf(x, k, l) * r.q[(k*r.leaves()+l)*r.labels+c]
	}
	return g
}

// loss is R_F of section 3.3: the mean over trees and rows of Eq. 3.
func (r *reference) loss(xs, ds [][]float64) float64 {
	sum := 0.0
	for i, x := range xs {
		for k := range r.trees {
			for c, d := range ds[i] {
				if d > 0 {
					sum -= d * math.Log(math.Max(r.tree(x, k, c, 0, r.leaves()), 1e-20))
				}
			}
		}
	}
	return sum / float64(len(xs)*r.trees)
}

// gradient is Eqs. 5, 6 and 13, term by term.
func (r *reference) gradient(xs, ds [][]float64) []float64 {
	grad := make([]float64, len(r.theta))
	for i, x := range xs {
		for k := range r.trees {
			for n := range r.leaves() - 1 {
				j := int(r.phi[k*(r.leaves()-1)+n])
				r.spread(grad, x, j, r.splitGradient(x, ds[i], k, n)/float64(len(xs)*r.trees))
			}
		}
	}
	return grad
}

// splitGradient is N ∂R/∂f_φ(n)(x) of Eq. 6.
func (r *reference) splitGradient(x, d []float64, k, n int) float64 {
	from, mid, to := r.below(n)
	s, sum := r.split(x, k, n), 0.0
	for c, dc := range d {
		g := math.Max(r.tree(x, k, c, 0, r.leaves()), 1e-20)
		sum += dc * (s*r.tree(x, k, c, mid, to)/g - (1-s)*r.tree(x, k, c, from, mid)/g)
	}
	return sum
}

// below returns the leaves [from, mid) left and [mid, to) right of split node n.
func (r *reference) below(n int) (from, mid, to int) {
	level := 0
	for first := 0; n >= 2*first+1; first = 2*first + 1 {
		level++
	}
	width := r.leaves() >> level
	from = (n - (1<<level - 1)) * width
	return from, from + width/2, from + width
}

// numeric is the gradient by central differences.
func (r *reference) numeric(xs, ds [][]float64) []float64 {
	const h = 1e-5
	grad := make([]float64, len(r.theta))
	for i, v := range r.theta {
		r.theta[i] = v + h
		up := r.loss(xs, ds)
		r.theta[i] = v - h
		down := r.loss(xs, ds)
		r.theta[i] = v
		grad[i] = (up - down) / (2 * h)
	}
	return grad
}

// floats splits a row-major matrix into rows of float64.
func floats(v []float32, width int) [][]float64 {
	rows := make([][]float64, len(v)/width)
	for i := range rows {
		rows[i] = widened(v[i*width : (i+1)*width])
	}
	return rows
}
