package ldlf

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// leafAt is the number of F64 values of a leaf update's partial before the sums:
// distinct rows, rows with their multiplicity, K-L summed over rows and trees.
const leafAt = 3

// leafSums computes the unit's part of an iteration of Eq. 12 over the window
// u.Steps. F64 holds the distinct rows, their multiplicities, the K-L summed over
// rows and trees, and for each tree, leaf and class Σ_i w_i p(ℓ|x_i) d_ic / g_c(x_i).
// Where F64 has a value more, that stays 0, nobody wants the K-L and it is 0 too.
func (k *kernel) leafSums(dst *algorithms.Partial, u *algorithms.Unit, d *dataset.Data, v *values, kept *routing, s *scratch) {
	t := dst.F64[leafAt : leafAt+k.q()]
	tellsLoss := len(dst.F64) == leafAt+len(t)
	s.abreast.ready()
	s.leaves.begin(k.labels, s.abreast.width, k.treeQ())
	if kept != nil {
		for from := 0; from < kept.rows; from += kept.width {
			b := kept.block(from, &k.sizes)
			for i := range k.trees {
				k.blockSums(t, i, b, kept.leaves(from, b.columns, i, &k.sizes), v.q, tellsLoss, s)
			}
			b.count(dst.F64, tellsLoss, &s.leaves)
		}
	} else {
		refs := u.Rows(d)
		s.rows, s.weight, s.counts = window(s.rows, s.weight, s.counts, k.draws, u, len(refs))
		k.eachBlock(refs, d, v, s, func(_ int, b leafBlock) {
			for i := range k.trees {
				k.blockSums(t, i, b, s.abreast.reach(k.treePhi(k.phi, i)), v.q, tellsLoss, s)
			}
			b.count(dst.F64, tellsLoss, &s.leaves)
		})
	}
	for i := range k.trees {
		sums := treeOf(t, i, k.treeQ())
		copy(s.leaves.sums, sums)
		transpose(sums, s.leaves.sums, k.leaves)
	}
}

// blockSums adds a block of rows to the sums of Eq. 12 of tree i; t is
// trees×labels×leaves until all rows are in, and p the tree's leaves×columns.
func (k *kernel) blockSums(t []float64, i int, b leafBlock, p, q []float32, tellsLoss bool, s *scratch) {
	a, l := &s.abreast, &s.leaves
	a.n = b.columns
	g := a.predict(p, treeOf(q, i, k.treeQ()))
	r := l.r[:len(g)]
	num.Quotients(r, b.weight, b.d, g, gFloor)
	if tellsLoss {
		b.divergences(treeOf(l.kl, i, b.columns), g, l.ratio[:b.columns])
	}
	num.AddProduct64T(treeOf(t, i, k.treeQ()), r, p, b.n, b.columns, l.tile)
}

// divergences sets kl to the rows' K-L in one tree; see ratios.
func (b leafBlock) divergences(kl []float64, g, ratio []float32) {
	clear(kl)
	for from := 0; from < len(g); from += b.columns {
		num.Ratios(ratio, kl, b.d[from:from+b.columns], g[from:from+b.columns], 1, gFloor)
	}
}

// count adds the block's rows, their weights and, row after row and tree after tree,
// their K-L.
func (b leafBlock) count(dst []float64, tellsLoss bool, l *leafSpace) {
	dst[0] += float64(b.n)
	for i, w := range b.weight[:b.n] {
		dst[1] += float64(w)
		if !tellsLoss {
			continue
		}
		for tree := range l.trees {
			dst[2] += float64(float64(w) * l.kl[tree*b.columns+i])
		}
	}
}
