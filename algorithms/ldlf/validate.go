package ldlf

import (
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/internal/num"
)

// klFloor bounds predictions from below in validation, as the measures do.
const klFloor = 1e-12

// Validation implements gradient.Loss: the K-L divergence of the forest's prediction.
func (l *forestLoss) Validation(f []float32, x *gradient.Sample, v *gradient.Values) float64 {
	k, s := l.k, l.s
	q, _ := qOf(v)
	predictForest(s.g, f, q, k.phi, &k.sizes, s)
	return divergence(x.D, s.g)
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

// divergence returns the K-L divergence Σ_c d_c ln(d_c / g_c) in nats, with g
// clamped at klFloor; d_c = 0 counts 0.
func divergence(d, g []float32) float64 {
	sum := 0.0
	for c, dc := range d {
		if dc > 0 {
			sum += float64(float64(dc) * num.Log(float64(dc)/max(float64(g[c]), klFloor)))
		}
	}
	return sum
}
