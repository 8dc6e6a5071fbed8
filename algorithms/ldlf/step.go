package ldlf

import (
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
	"github.com/coppice-ldl/coppice/round"
)

// step computes the unit's part of the gradient on mini-batch u.Steps[0]: F64
// holds the rows drawn and their K-L summed over rows and trees, the rest is the
// feature function's. Rows are taken in the order of drawing.
func (k *kernel) step(dst *round.Partial, u *round.Unit, d *dataset.Data, v *values, s *scratch) {
	refs := u.Rows(d)
	s.rows = k.draws.draw(s.rows[:0], u, len(refs), u.Steps[0])
	s.batch = gather(s.batch[:0], s.rows, refs, d)
	k.f.begin(dst, u, s.batch, s.abreast.width, s.ws)
	dst.F64[0] = float64(len(s.batch))
	s.losses = s.losses[:0]
	for rest := s.batch; len(rest) > 0; {
		n := min(s.abreast.width, len(rest))
		k.gradients(rest[:n], v, s)
		k.f.backward(dst, s.df[:n*k.outputs], rest[:n], &v.weights, s.ws)
		rest = rest[n:]
	}
	dst.F64[1] = sumLosses(s.losses)
}

// lossRows is how many rows' K-L are summed before they are added to the unit's: a
// matter of its last bit, which is not to depend on how many rows stand abreast.
const lossRows = 32

func sumLosses(losses []float64) (sum float64) {
	for from := 0; from < len(losses); from += lossRows {
		part := 0.0
		for _, x := range losses[from:min(from+lossRows, len(losses))] {
			part += x
		}
		sum += part
	}
	return sum
}

// gradients sets s.df to ∂R/∂f of the samples, summed over trees (Eq. 13 without
// its 1/N and 1/K), and appends each one's K-L, summed over trees, to s.losses. There
// are as many samples as stand abreast, or fewer.
func (k *kernel) gradients(samples []sample, v *values, s *scratch) {
	k.f.forward(s.f, samples, &v.weights, s.ws)
	if len(samples) < fewRows {
		k.transposeQ(v, s)
		k.rowGradients(samples, v.q, s)
		return
	}
	a := &s.abreast
	a.begin(samples, s.f)
	for i := range k.trees {
		a.tree(k.treePhi(k.phi, i), treeOf(v.q, i, k.treeQ()))
	}
	s.losses = a.end(s.df, s.losses)
}

// rowGradients is gradients for one row after the other.
func (k *kernel) rowGradients(samples []sample, q []float32, s *scratch) {
	clear(s.df[:len(samples)*k.outputs])
	for i := range samples {
		num.SigmoidPairs(s.s, s.t, treeOf(s.f, i, k.outputs))
		s.losses = append(s.losses, k.rowGradient(treeOf(s.df, i, k.outputs), samples[i].d, q, s))
	}
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
		loss += ratios(s.r, d, s.g, 1, s.terms)
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
