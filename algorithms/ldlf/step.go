package ldlf

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// step computes the unit's part of the gradient on mini-batch u.Steps[0]: F64
// holds the rows drawn and their K-L summed over rows and trees, the rest is the
// feature function's. Rows are taken in the order of drawing.
func (k *kernel) step(dst *algorithms.Partial, u *algorithms.Unit, d *dataset.Data, v *values, s *scratch) {
	refs := u.Rows(d)
	s.rows = k.draws.draw(s.rows[:0], u, len(refs), u.Steps[0])
	s.batch = gather(s.batch[:0], s.rows, refs, d)
	k.f.begin(dst, s.batch, s.ws)
	dst.F64[0] = float64(len(s.batch))
	for rest := s.batch; len(rest) > 0; {
		n := min(block, len(rest))
		dst.F64[1] += k.gradients(rest[:n], v, s)
		k.f.backward(dst, s.df[:n*k.outputs], rest[:n], &v.weights, s.ws)
		rest = rest[n:]
	}
}

// gradients sets s.df to ∂R/∂f of the samples, summed over trees (Eq. 13 without
// its 1/N and 1/K), and returns the K-L summed over samples and trees.
func (k *kernel) gradients(samples []sample, v *values, s *scratch) float64 {
	k.transposeQ(v, s)
	k.f.forward(s.f, samples, &v.weights, s.ws)
	df := s.df[:len(samples)*k.outputs]
	clear(df)
	loss := 0.0
	for i := range samples {
		num.SigmoidPairs(s.s, s.t, treeOf(s.f, i, k.outputs))
		loss += k.rowGradient(treeOf(df, i, k.outputs), samples[i].d, v.q, s)
	}
	return loss
}

// rowGradient adds one row's ∂R/∂f to df, tree after tree, and returns its K-L
// summed over trees.
func (k *kernel) rowGradient(df, d, q []float32, s *scratch) float64 {
	loss := 0.0
	for i := range k.trees {
		phi := k.treePhi(k.phi, i)
		reach(s.node, s.s, s.t, phi)
		p := s.node[k.splits:]
		predict(s.g, p, treeOf(q, i, k.treeQ()))
		loss += ratios(s.r, d, s.g, 1)
		leafMass(s.mass[k.splits:], p, s.r, treeOf(s.qT, i, k.treeQ()))
		splitGradients(df, s.mass, s.s, s.t, phi)
	}
	return loss
}

// transposeQ sets s.qT to q with each tree's matrix transposed, once for each
// version of q.
func (k *kernel) transposeQ(v *values, s *scratch) {
	if s.qT != nil && s.qTVersion == v.qVersion {
		return
	}
	if s.qT == nil {
		s.qT = make([]float32, k.q())
	}
	for i := range k.trees {
		transpose(treeOf(s.qT, i, k.treeQ()), treeOf(v.q, i, k.treeQ()), k.labels)
	}
	s.qTVersion = v.qVersion
}
