package ldlf

import "github.com/coppice-ldl/coppice/internal/num"

// shareFrom is how many products of a row and a value of q are worth to be shared: lanes
// that have nothing to do need some 50 µs to wake up.
const shareFrom = 1 << 21

// leafShare is an iteration of Eq. 12 over derived routing. Idle lanes share its trees, of
// which none reads what another computes.
type leafShare struct {
	k       *kernel
	routing *routing
	q       []float32
	t       []float64 // trees×leaves×labels
	kl      []float64 // trees×columns of each block; nil: nobody wants it
}

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

// count adds the blocks up; see leafBlock.count. The weights are integers, whose sum is the
// same in every order.
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
