package ldlf

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// leafBlock is a block of a window's rows as Eq. 12 takes them: a column for each row,
// and more of weight 0 up to whole vectors.
type leafBlock struct {
	n       int       // rows
	columns int       // n, or a few more
	weight  []float32 // columns: how often each was drawn
	d       []float32 // labels×columns
}

// columnsOf returns the columns of a block of n rows, where the widest has width.
func columnsOf(n, width int) int {
	lanes := min(width, 32)
	return (n + lanes - 1) / lanes * lanes
}

// routing holds what stays the same while Eq. 12 is iterated: of the window's distinct
// rows, block after block, the weights, the labels and the routing probabilities under
// Θ. A block that begins at column i begins at i times its rows everywhere.
type routing struct {
	rows   int
	drawn  float64   // the sum of weights
	width  int       // columns of a block, of the last one or fewer
	weight []float32 // columns
	d      []float32 // labels×columns, of each block
	p      []float32 // trees×leaves×columns, of each block

	holders atomic.Int32
	spare   *spare // where it goes when nobody holds it
}

// allColumns returns the columns of all blocks of a number of rows.
func allColumns(rows, width int) int { return rows/width*width + columnsOf(rows%width, width) }

// routingBytes returns the memory of a routing of so many rows.
func routingBytes(z *sizes, rows, width int) int {
	return 4 * allColumns(rows, width) * (1 + z.labels + z.trees*z.leaves)
}

// shape makes room for a number of rows.
func (r *routing) shape(z *sizes, rows, width int) {
	columns := allColumns(rows, width)
	r.rows, r.width = rows, width
	r.weight = slices.Grow(r.weight[:0], columns)[:columns]
	r.d = slices.Grow(r.d[:0], z.labels*columns)[:z.labels*columns]
	n := z.trees * z.leaves * columns
	r.p = slices.Grow(r.p[:0], n)[:n]
}

// Bytes implements round.Derived.
func (r *routing) Bytes() int { return 4 * (cap(r.weight) + cap(r.d) + cap(r.p)) }

// Retain implements round.Derived.
func (r *routing) Retain() { r.holders.Add(1) }

// Release implements round.Derived.
func (r *routing) Release() {
	if r.holders.Add(-1) == 0 {
		r.spare.put(r)
	}
}

// spareLimit bounds the memory of a job that waits for its next leaf update; it is no
// part of what a process may keep.
const spareLimit = 16 << 20

// spare has routings that nobody holds: the next leaf update's take their memory.
type spare struct {
	mu    sync.Mutex
	ready []*routing
	bytes int
}

// put takes a routing, or leaves it to the garbage collector where there are enough.
func (s *spare) put(r *routing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := r.Bytes(); s.bytes+n <= spareLimit {
		s.bytes += n
		s.ready = append(s.ready, r)
	}
}

// get returns a routing with one holder.
func (s *spare) get() *routing {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &routing{spare: s}
	if n := len(s.ready); n > 0 {
		r, s.ready[n-1] = s.ready[n-1], nil
		s.ready = s.ready[:n-1]
		s.bytes -= r.Bytes()
	}
	r.holders.Store(1)
	return r
}

// block returns the block that begins with column from.
func (r *routing) block(from int, z *sizes) leafBlock {
	n := min(r.width, r.rows-from)
	columns := columnsOf(n, r.width)
	return leafBlock{n: n, columns: columns, weight: r.weight[from : from+columns], d: r.d[from*z.labels : (from+columns)*z.labels]}
}

// leaves returns a tree's routing probabilities, leaves×columns, in the block that
// begins with column from.
func (r *routing) leaves(from, columns, tree int, z *sizes) []float32 {
	return chunk(r.p[from*z.trees*z.leaves:], tree, z.leaves*columns)
}

// after returns what is read after a tree's routing in the block that begins with column
// from: the tree's in the next block, or the next tree's in the first one.
func (r *routing) after(from, tree int, z *sizes) []float32 {
	if from += r.width; from >= r.rows {
		from, tree = 0, tree+1
	}
	if tree == z.trees {
		return nil
	}
	return r.leaves(from, r.block(from, z).columns, tree, z)
}

// Derive implements round.Kernel: the routing of a leaf update's unit, or nil
// where there is no room for it.
func (k *kernel) Derive(u round.Task, d *dataset.Data, v round.Vars, working any) (round.Derived, error) {
	if err := checkWindow(&u); err != nil {
		return nil, err
	}
	s := working.(*scratch)
	refs := u.Rows(d)
	w := &s.window
	w.Count(k.descent.Draws, &u, len(refs))
	if !u.TryReserve(routingBytes(&k.sizes, len(w.Rows), s.block.width)) {
		return nil, nil
	}
	r := k.spare.get()
	r.shape(&k.sizes, len(w.Rows), s.block.width)
	r.drawn = num.Sum64(w.Weights)
	s.Values.Read(v)
	x := &s.leaves.routed
	*x = routed{k: k, r: r, refs: refs, data: d, values: &s.Values, of: w}
	if blocks := (len(w.Rows) + r.width - 1) / r.width; blocks > 1 && u.Helpers() > 0 {
		u.Lanes.Do(blocks, x)
	} else {
		for i := range blocks {
			x.Part(i, s)
		}
	}
	*x = routed{}
	return r, nil
}

// routed is a routing while its blocks are derived, by several lanes perhaps.
type routed struct {
	k      *kernel
	r      *routing
	refs   []dataset.RowRef
	data   *dataset.Data
	values *gradient.Values
	of     *gradient.Window
}

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

// takeBlock puts a block of the rows of a window into s.block, from position from on. refs has all rows of the
// window.
func (k *kernel) takeBlock(from int, of *gradient.Window, refs []dataset.RowRef, d *dataset.Data, v *gradient.Values, s *scratch) leafBlock {
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

// leafSpace is the working memory of Eq. 12's sums.
type leafSpace struct {
	weight []float32 // of a block's columns
	r      []float64 // labels×columns: ratios, widened
	ratio  []float32 // labels×columns: ratios that nobody reads
	kl     []float64 // trees×columns, of one block or of each
	sums   []float64 // of one tree, to be transposed
	tile   *num.Tile
	routed routed
	share  leafShare
}

// begin makes room for a block of so many columns, and a tree of so many values of q.
func (l *leafSpace) begin(labels, columns, q int) {
	l.r = slices.Grow(l.r[:0], labels*columns)[:labels*columns]
	l.ratio = slices.Grow(l.ratio[:0], labels*columns)[:labels*columns]
	l.sums = slices.Grow(l.sums[:0], q)[:q]
	if l.tile == nil {
		l.tile = new(num.Tile)
	}
}

// leafAt is the number of F64 values of a leaf update's partial before the sums:
// distinct rows, rows with their multiplicity, K-L summed over rows and trees.
const leafAt = 3

// leafSums computes the unit's part of an iteration of Eq. 12 over the window
// u.Steps. F64 holds the distinct rows, their multiplicities, the K-L summed over
// rows and trees, and for each tree, leaf and class Σ_i w_i p(ℓ|x_i) d_ic / g_c(x_i).
// Where F64 has a value more, that stays 0, nobody wants the K-L and it is 0 too.
func (k *kernel) leafSums(dst *round.Partial, u *round.Task, d *dataset.Data, v *gradient.Values, r *routing, s *scratch) {
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
func (k *kernel) routedSums(dst, t []float64, u *round.Task, d *dataset.Data, v *gradient.Values, tellsLoss bool, s *scratch) {
	refs, l := u.Rows(d), &s.leaves
	s.window.Count(k.descent.Draws, u, len(refs))
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
