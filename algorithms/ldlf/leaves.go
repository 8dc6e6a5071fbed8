package ldlf

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// leafAt is the number of F64 values of a leaf update's partial before the sums:
// distinct rows, rows with their multiplicity, K-L summed over rows and trees.
const leafAt = 3

// routing holds what stays the same while Eq. 12 is iterated: the window's
// distinct rows with their weights, and their routing probabilities under Θ.
type routing struct {
	rows   []uint32  // positions among the unit's rows, ascending
	weight []float32 // how often each was drawn
	p      []float32 // rows×trees×leaves
}

// Bytes implements algorithms.Sized.
func (r *routing) Bytes() int { return 4 * (len(r.rows) + len(r.weight) + len(r.p)) }

// Derive implements algorithms.Kernel: the routing of a leaf update's unit, or nil
// where there is no room for it.
func (k *kernel) Derive(u algorithms.Unit, d *dataset.Data, v algorithms.Vars, working any) (any, error) {
	if err := checkWindow(&u); err != nil {
		return nil, err
	}
	s := working.(*scratch)
	refs := u.Rows(d)
	var r routing
	r.rows, r.weight, s.counts = window(nil, nil, s.counts, k.draws, &u, len(refs))
	if !u.Fits(4 * len(r.rows) * (len(s.p) + 2)) {
		return nil, nil
	}
	r.p = make([]float32, len(r.rows)*len(s.p))
	x := k.values(v, varTheta, varQ, s)
	k.eachBlock(r.rows, refs, d, x, s, func(from int, samples []sample) {
		for i := range samples {
			k.route(treeOf(r.p, from+i, len(s.p)), treeOf(s.f, i, k.outputs), s)
		}
	})
	return &r, nil
}

// leafSums computes the unit's part of an iteration of Eq. 12 over the window
// u.Steps. F64 holds the distinct rows, their multiplicities, the K-L summed over
// rows and trees, and for each tree, leaf and class Σ_i w_i p(ℓ|x_i) d_ic / g_c(x_i).
func (k *kernel) leafSums(dst *algorithms.Partial, u *algorithms.Unit, d *dataset.Data, v *values, kept *routing, s *scratch) {
	refs := u.Rows(d)
	if kept != nil {
		for i, row := range kept.rows {
			ref := refs[row]
			labels := d.Shard(int(ref.Shard)).Label(int(ref.Pos))
			k.rowSums(dst.F64, treeOf(kept.p, i, len(s.p)), labels, kept.weight[i], v.q, s)
		}
		return
	}
	s.rows, s.weight, s.counts = window(s.rows, s.weight, s.counts, k.draws, u, len(refs))
	k.eachBlock(s.rows, refs, d, v, s, func(from int, samples []sample) {
		for i := range samples {
			k.route(s.p, treeOf(s.f, i, k.outputs), s)
			k.rowSums(dst.F64, s.p, samples[i].d, s.weight[from+i], v.q, s)
		}
	})
}

// rowSums adds one row, drawn weight times, to the sums of Eq. 12; p is trees×leaves.
func (k *kernel) rowSums(dst []float64, p, d []float32, weight float32, q []float32, s *scratch) {
	dst[0]++
	dst[1] += float64(weight)
	for i := range k.trees {
		leaves := treeOf(p, i, k.leaves)
		predict(s.g, leaves, treeOf(q, i, k.treeQ()))
		dst[2] += float64(float64(weight) * ratios(s.r, d, s.g, weight, s.terms))
		num.AddOuter64(treeOf(dst[leafAt:], i, k.treeQ()), leaves, s.r)
	}
}

// route sets p (trees×leaves) to Eq. 1's probabilities for a row with outputs f.
func (k *kernel) route(p, f []float32, s *scratch) {
	num.SigmoidPairs(s.s, s.t, f)
	for i := range k.trees {
		reach(s.node, s.s, s.t, k.treePhi(k.phi, i))
		copy(treeOf(p, i, k.leaves), s.node[k.splits:])
	}
}
