package ldlf

import (
	"slices"

	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Part implements round.Parts: block i.
func (x *routed) Part(i int, working any) {
	k, s, from := x.k, working.(*scratch), i*x.r.width
	b := k.takeBlock(from, x.of, x.refs, x.data, x.values, s)
	copy(x.r.weight[from:], b.weight)
	copy(x.r.d[from*k.labels:], b.d)
	for tree := range k.trees {
		copy(x.r.leaves(from, b.columns, tree, &k.sizes), s.block.reach(k.treePhi(k.phi, tree)))
	}
}

// count sets w to the draws of a unit of a leaf update; the weight of a row is a factor of how often it was drawn.
func (k *kernel) count(w *gradient.Window, u *round.Task, refs []dataset.RowRef, d *dataset.Data) {
	w.Count(k.descent.Draws, u, len(refs))
	if !d.Manifest.HasWeights {
		return
	}
	for i, row := range w.Rows {
		w.Weights[i] = float32(float64(w.Weights[i]) * d.Shard(int(refs[row].Shard)).WeightOf(int(refs[row].Pos)))
	}
}

// takeBlock puts a block of the rows of a window into s.block, from position from on. refs has all rows of the
// window.
func (k *kernel) takeBlock(from int, of *gradient.Window, refs []dataset.RowRef, d *dataset.Data, v *gradient.Values,
	s *scratch) leafBlock {
	a := &s.block
	n := min(a.width, len(of.Rows)-from)
	columns := columnsOf(n, a.width)
	s.Batch = gradient.Gather(s.Batch[:0], of.Rows[from:from+n], refs, d)
	k.descent.Function.Predict(s.F, s.Batch, &v.Weights, s.Space)
	a.take(s.Batch, s.F, columns)
	s.leaves.weight = append(append(s.leaves.weight[:0], of.Weights[from:from+n]...), zeros[:columns-n]...)
	return leafBlock{n: n, columns: columns, weight: s.leaves.weight, d: a.d[:k.labels*columns]}
}

// zeros are the weights of columns that are no rows.
var zeros [32]float32

// leafAt is the number of F64 values of a leaf update's partial before the sums:
// distinct rows, rows with their multiplicity, K-L summed over rows and trees.
const leafAt = 3

// leafSums computes the unit's part of an iteration of Eq. 12 over the window
// u.Steps. F64 holds the distinct rows, their multiplicities, the K-L summed over
// rows and trees, and for each tree, leaf and class Σ_i w_i p(ℓ|x_i) d_ic / g_c(x_i).
// Where F64 has a value more, that stays 0, nobody wants the K-L and it is 0 too.
func (k *kernel) leafSums(dst *round.Partial, u *round.Task, d *dataset.Data, v *gradient.Values, r *routing,
	s *scratch) {
	t := dst.F64[leafAt : leafAt+k.q()]
	tellsLoss := len(dst.F64) == leafAt+len(t)
	q, _ := qOf(v)
	s.leaves.begin(k.labels, s.block.width, k.treeQ())
	switch {
	case r == nil:
		k.routedSums(dst.F64, t, u, d, v, tellsLoss, s)
	case r.rows*k.q() < shareFrom || u.Helpers() == 0:
		k.derivedSums(dst.F64, t, r, q, tellsLoss, nil, s)
	default:
		k.derivedSums(dst.F64, t, r, q, tellsLoss, u.Lanes, s)
	}
}

// derivedSums takes derived routing, tree after tree, in one lane or, where lanes is set, in
// several; t is zero before, and trees×leaves×labels.
func (k *kernel) derivedSums(dst, t []float64, r *routing, q []float32, tellsLoss bool, lanes round.Lanes, s *scratch) {
	l := &s.leaves
	x := &l.share
	*x = leafShare{k: k, routing: r, q: q, t: t}
	if tellsLoss {
		n := k.trees * allColumns(r.rows, r.width)
		l.kl = slices.Grow(l.kl[:0], n)[:n]
		x.kl = l.kl
	}
	if lanes != nil {
		lanes.Do(k.trees, x)
	} else {
		for i := range k.trees {
			x.tree(i, s)
		}
	}
	x.count(dst)
	*x = leafShare{}
}

// routedSums is derivedSums where there is no room for the routing of all blocks.
func (k *kernel) routedSums(dst, t []float64, u *round.Task, d *dataset.Data, v *gradient.Values, tellsLoss bool,
	s *scratch) {
	refs, l := u.Rows(d), &s.leaves
	k.count(&s.window, u, refs, d)
	q, _ := qOf(v)
	for from := 0; from < len(s.window.Rows); from += s.block.width {
		b := k.takeBlock(from, &s.window, refs, d, v, s)
		var kl []float64
		if tellsLoss {
			l.kl = slices.Grow(l.kl[:0], k.trees*b.columns)[:k.trees*b.columns]
			kl = l.kl
		}
		for i := range k.trees {
			p := s.block.reach(k.treePhi(k.phi, i))
			k.blockRatios(l.r, kl, i, b, p, q, s)
			num.AddProduct64T(chunk(t, i, k.treeQ()), l.r[:k.labels*b.columns], p, b.n, b.columns, nil, l.tile)
		}
		b.count(dst, kl)
	}
	for i := range k.trees { // from labels×leaves to leaves×labels
		sums := chunk(t, i, k.treeQ())
		copy(l.sums, sums)
		num.Transpose64(sums, l.sums, k.leaves)
	}
}

// blockRatios sets r (labels×columns) to w d / g of a block of rows under tree i, and the
// tree's part of kl (trees×columns), where it is not nil, to the rows' K-L; p is the tree's
// leaves×columns.
func (k *kernel) blockRatios(r, kl []float64, i int, b leafBlock, p, q []float32, s *scratch) {
	a := &s.block
	a.n = b.columns
	g := a.predict(p, chunk(q, i, k.treeQ()))
	num.Quotients(r[:len(g)], b.weight, b.d, g, gFloor)
	if kl != nil {
		kl = chunk(kl, i, b.columns)
		clear(kl)
		num.RatioRows(s.leaves.ratio[:len(g)], kl, b.d, g, gFloor)
	}
}

// count adds the block's rows, their weights and, row after row and tree after tree,
// their K-L, where kl (trees×columns) has it.
func (b leafBlock) count(dst, kl []float64) {
	dst[0] += float64(b.n)
	for i, w := range b.weight[:b.n] {
		dst[1] += float64(w)
		for at := i; at < len(kl); at += b.columns {
			dst[2] += float64(float64(w) * kl[at])
		}
	}
}

// shareFrom is how many products of a row and a value of q are worth to be shared: lanes
// that have nothing to do need some 50 µs to wake up.
const shareFrom = 1 << 21

// Part implements round.Parts: tree i.
func (x *leafShare) Part(i int, working any) {
	s := working.(*scratch)
	s.leaves.begin(x.k.labels, s.block.width, x.k.treeQ())
	x.tree(i, s)
}

// tree computes tree i's sums, block after block.
func (x *leafShare) tree(i int, s *scratch) {
	k, l := x.k, &s.leaves
	s.block.ready()
	clear(l.sums)
	for from := 0; from < x.routing.rows; from += x.routing.width {
		b := x.routing.block(from, &k.sizes)
		p := x.routing.leaves(from, b.columns, i, &k.sizes)
		k.blockRatios(l.r, x.losses(from, b), i, b, p, x.q, s)
		num.AddProduct64T(l.sums, l.r[:k.labels*b.columns], p, b.n, b.columns, x.routing.after(from, i, &k.sizes), l.tile)
	}
	num.Transpose64(chunk(x.t, i, k.treeQ()), l.sums, k.leaves)
}

// count adds the blocks up; see leafBlock.count, whose sum of the weights is added in the same order.
func (x *leafShare) count(dst []float64) {
	if x.kl == nil {
		dst[0] += float64(x.routing.rows)
		dst[1] += x.routing.drawn
		return
	}
	for from := 0; from < x.routing.rows; from += x.routing.width {
		b := x.routing.block(from, &x.k.sizes)
		b.count(dst, x.losses(from, b))
	}
}

// losses returns the K-L, trees×columns, of block b, which begins with column from; nil:
// nobody wants it.
func (x *leafShare) losses(from int, b leafBlock) []float64 {
	if x.kl == nil {
		return nil
	}
	return chunk(x.kl[from*x.k.trees:], 0, x.k.trees*b.columns)
}
