package ldlf

import (
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// shrinkParts is how many equal parts the weight of the mean distribution has: it is 0, 1/2 or 1. By few
// validation rows a finer choice takes a little of the mean where none is right (docs/design/defaults.md).
const shrinkParts = 2

// varMean is the value (Var.ID) that is not of gradient.Descent: the mean label distribution.
const varMean = 1

// mixIn sets dst to p with the mean distribution mixed in, so many parts of it. dst may be p. With no
// part of it the bits are p's.
func mixIn(dst, p, mean []float32, parts int) {
	own, of := float32(shrinkParts-parts)/shrinkParts, float32(parts)/shrinkParts
	for c, m := range mean {
		dst[c] = float32(own*p[c]) + float32(of*m)
	}
}

// shrunk returns q with the mean mixed into each leaf. Since a prediction is a mean of leaves, so it is
// mixed into each prediction.
func shrunk(q, mean []float32, parts int) []float32 {
	if parts == 0 {
		return q
	}
	all := make([]float32, len(q))
	for l := 0; l < len(q); l += len(mean) {
		mixIn(all[l:l+len(mean)], q[l:], mean, parts)
	}
	return all
}

// takeMean sets mean to the label distribution of a leaf update's rows: of a tree's q (leaves×labels) and
// its sums of Eq. 12 it is Σ_ℓ q_ℓc T_ℓc = Σ_i w_i d_ic, since Σ_ℓ p(ℓ|x_i) q_ℓc is g_c(x_i).
func takeMean(mean, q []float32, sums []float64) {
	labels, total := len(mean), 0.0
	degrees := make([]float64, labels)
	for i, t := range sums {
		x := float64(float64(q[i]) * t)
		degrees[i%labels] += x
		total += x
	}
	if !(total > 0) {
		return
	}
	for c, x := range degrees {
		mean[c] = float32(x / total)
	}
}

// shrunkLosses sums the weighted K-L of the unit's rows for each weight of the mean: F64 holds these sums.
func (k *kernel) shrunkLosses(dst *round.Partial, u *round.Task, d *dataset.Data, v round.Vars, s *scratch) {
	mean := num.Float32s(v.Get(varMean))
	q, _ := qOf(&s.Values)
	k.descent.EachRow(u, d, &s.Scratch, func(_ int, f []float32, x *gradient.Sample) {
		weight := x.Weight()
		predictForest(s.g, f, q, k.phi, &k.sizes, s)
		for parts := range shrinkParts + 1 {
			mixIn(s.r, s.g, mean, parts)
			dst.F64[parts] += float64(weight * divergence(x.D, s.r))
		}
	})
}
