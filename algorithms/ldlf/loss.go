package ldlf

import (
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Gradients implements gradient.Loss: df is ∂R/∂f of the samples, summed over these trees (Eq. 13
// without its 1/N and 1/K). There are as many samples as a block has, or fewer.
func (l *forestLoss) Gradients(df, f []float32, samples []gradient.Sample, v *gradient.Values,
	losses []float64) []float64 {
	k, s := l.k, l.s
	q, version := qOf(v)
	first, end := k.turns.at(s.unit.Steps[0])
	if len(samples) < fewRows {
		k.transposeQ(q, version, s)
		clear(df)
		for i := range samples {
			num.SigmoidPairs(s.s, s.t, chunk(f, i, k.outputs))
			losses = append(losses, k.rowGradient(chunk(df, i, k.outputs), samples[i].D, q, s))
		}
		return losses
	}
	a := &s.block
	a.begin(samples, f)
	for i := first; i < end; i++ {
		a.tree(k.treePhi(k.phi, i), chunk(q, i, k.treeQ()))
	}
	return a.end(df, losses)
}

// Validation implements gradient.Loss: the K-L divergence of the forest's prediction.
func (l *forestLoss) Validation(f []float32, x *gradient.Sample, v *gradient.Values) float64 {
	k, s := l.k, l.s
	q, _ := qOf(v)
	predictForest(s.g, f, q, k.phi, &k.sizes, s)
	return divergence(x.D, s.g)
}

// rowGradient adds one row's ∂R/∂f to df, tree after tree, and returns its K-L
// summed over trees.
func (k *kernel) rowGradient(df, d, q []float32, s *scratch) float64 {
	loss := 0.0
	first, end := k.turns.at(s.unit.Steps[0])
	for i := first; i < end; i++ {
		phi := k.treePhi(k.phi, i)
		reach(s.node, s.s, s.t, phi)
		p := s.node[k.splits:]
		predict(s.g, p, chunk(q, i, k.treeQ()))
		loss += ratios(s.r, d, s.g, 1, s.terms)
		leafMass(s.mass[k.splits:], p, s.r, chunk(s.qT, i, k.treeQ()))
		splitGradients(df, s.mass, s.s, s.t, phi)
	}
	return loss
}

// transposeQ sets s.qT to q with each tree's matrix transposed, once for each
// version of q.
func (k *kernel) transposeQ(q []float32, version uint64, s *scratch) {
	if s.qT != nil && s.qTVersion == version {
		return
	}
	if s.qT == nil {
		s.qT = make([]float32, k.q())
	}
	for i := range k.trees {
		transpose(chunk(s.qT, i, k.treeQ()), chunk(q, i, k.treeQ()), k.labels)
	}
	s.qTVersion = version
}

// predictForest sets g (labels) to the mean of the trees' predictions for a row
// with outputs f (section 3.3). g may be s.g.
func predictForest(g, f, q []float32, phi []uint32, z *sizes, s *scratch) {
	num.SigmoidPairs(s.s, s.t, f)
	clear(g)
	for i := range z.trees {
		reach(s.node, s.s, s.t, z.treePhi(phi, i))
		num.MulAddRows(g, s.node[z.splits:], chunk(q, i, z.treeQ()))
	}
	for c := range g {
		g[c] /= float32(z.trees)
	}
}
