package ldlf

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
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
		n := min(s.abreast.width, len(rest))
		dst.F64[1] += k.gradients(rest[:n], v, s)
		k.f.backward(dst, s.df[:n*k.outputs], rest[:n], &v.weights, s.ws)
		rest = rest[n:]
	}
}

// gradients sets s.df to ∂R/∂f of the samples, summed over trees (Eq. 13 without
// its 1/N and 1/K), and returns the K-L summed over samples and trees. There are
// as many samples as stand abreast, or fewer.
func (k *kernel) gradients(samples []sample, v *values, s *scratch) float64 {
	k.transposeQ(v, s)
	k.f.forward(s.f, samples, &v.weights, s.ws)
	a := &s.abreast
	a.begin(samples, s.f)
	for i := range k.trees {
		a.tree(k.treePhi(k.phi, i), treeOf(v.q, i, k.treeQ()), treeOf(s.qT, i, k.treeQ()))
	}
	return a.end(s.df)
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
