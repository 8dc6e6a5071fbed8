package ldlf

import (
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
	"github.com/coppice-ldl/coppice/round"
)

// klFloor bounds predictions from below in validation, as the measures do.
const klFloor = 1e-12

// validate sums the K-L divergence of the forest's predictions over the unit's
// rows: F64 holds the rows and the sum. s.losses is left with each row's.
func (k *kernel) validate(dst *round.Partial, u *round.Unit, d *dataset.Data, v *values, s *scratch) {
	s.losses = s.losses[:0]
	k.eachLoss(u, d, v, s, func(_ int, loss float64) { s.losses = append(s.losses, loss) })
	dst.F64[0] = float64(len(s.losses))
	for _, loss := range s.losses {
		dst.F64[1] += loss
	}
}

// compare adds to validate's sums those of the reference's losses less the
// present ones, and of the squares of these differences.
func (k *kernel) compare(dst *round.Partial, u *round.Unit, d *dataset.Data, reference *values, s *scratch) {
	k.eachLoss(u, d, reference, s, func(i int, loss float64) {
		gain := loss - s.losses[i]
		dst.F64[2] += gain
		dst.F64[3] += float64(gain * gain)
	})
}

// eachLoss calls do with the K-L of every row of the unit.
func (k *kernel) eachLoss(u *round.Unit, d *dataset.Data, v *values, s *scratch, do func(i int, loss float64)) {
	refs := u.Rows(d)
	block := s.block.width
	for from := 0; from < len(refs); from += block {
		s.batch = s.batch[:0]
		for _, ref := range refs[from:min(from+block, len(refs))] {
			s.batch = append(s.batch, sampleOf(d.Shard(int(ref.Shard)), int(ref.Pos)))
		}
		k.f.forward(s.f, s.batch, &v.weights, s.ws)
		for i := range s.batch {
			predictForest(s.g, chunk(s.f, i, k.outputs), v.q, k.phi, &k.sizes, s)
			do(from+i, divergence(s.batch[i].d, s.g))
		}
	}
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
