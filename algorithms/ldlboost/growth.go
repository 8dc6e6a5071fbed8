package ldlboost

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms/kit/binning"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/forest"
	"github.com/coppice-ldl/coppice/internal/num"
)

// node is a node of the tree at work.
type node struct {
	depth int
	sum   []float64 // of its rows; nil: not known yet
	hist  sums      // by bin, as layout says, but for the first width sums; none: not needed, or not known yet
	best  split     // of an open or inner node
	open  bool
	inner bool
}

// growth is a tree at work. A node is open if its best split gains something, and it is not split. It has a histogram
// if its children may be split, which is int32 if all its bins fit. Of the last splits, some wait for the histograms of
// their children.
type growth struct {
	cfg    *Config
	rows   int // of the dataset
	search *search
	bins   *binning.Bins
	layout *layout

	wide    [][]float64 // spare memory of histograms
	narrow  [][]int32
	nodes   []node
	splits  []division
	waiting int    // splits before this one wait no longer
	step    uint64 // rounds of the tree
}

// begin begins a tree.
func (g *growth) begin(b *binning.Bins, l *layout) {
	for i := range g.nodes {
		g.drop(&g.nodes[i])
	}
	g.bins, g.layout = b, l
	g.nodes, g.splits, g.waiting, g.step, g.search.thresholds = []node{{}}, g.splits[:0], 0, 0, 0
}

// children returns the children of split k: the one with fewer rows first, the left one if they have equally many.
func (g *growth) children(k int) (small, large *node) {
	small, large = &g.nodes[2*k+1], &g.nodes[2*k+2]
	if small.sum[0] > large.sum[0] {
		small, large = large, small
	}
	return small, large
}

// splittable reports whether a node may be split.
func (g *growth) splittable(n *node) bool {
	return n.depth < g.cfg.Depth && n.sum[0] >= float64(2*g.cfg.LeafRows) && len(g.splits)+1 < g.cfg.Leaves &&
		len(g.layout.columns) > 0
}

// waits reports whether split k needs the histograms of its children. If the smaller one may be split, so may the
// larger one.
func (g *growth) waits(k int) bool {
	_, large := g.children(k)
	return g.splittable(large)
}

// fitsNarrow reports whether the sums of all bins of a split's smaller child are narrow: it has few rows, or all bins
// of its parent have. Workers do not sum the zero bins of sparse columns.
func (g *growth) fitsNarrow(k int) bool {
	small, _ := g.children(k)
	hist := g.nodes[g.splits[k].node].hist
	return small.sum[0] <= mostNarrow || hist.narrow != nil || g.fit(hist.wide, false)
}

// fit reports whether all bins of a histogram have few rows; without zeros, but for zero bins of sparse columns.
func (g *growth) fit(hist []float64, zeros bool) bool {
	for i, at := range g.layout.columns {
		c, own := &g.bins.Columns[at], hist[(g.layout.first[i]-1)*g.layout.width:]
		for bin := range c.Bins() {
			if own[bin*g.layout.width] > mostNarrow && (zeros || !c.Sparse || bin != c.Zero) {
				return false
			}
		}
	}
	return true
}

// ask returns the nodes whose sums the next round is about, in place. It reports whether the sums are narrow.
func (g *growth) ask(r *request) (narrow bool) {
	r.splits, r.build = g.splits, r.build[:0]
	if g.nodes[0].sum == nil {
		r.build = append(r.build, 0)
		return g.rows <= mostNarrow && !g.layout.weighted
	}
	narrow = !g.layout.weighted
	most := max(1, chunkValues/g.layout.size())
	for k := g.waiting; k < len(g.splits) && len(r.build) < most; k++ {
		if !g.waits(k) {
			continue
		}
		small := 2*k + 1
		if g.nodes[2*k+1].sum[0] > g.nodes[2*k+2].sum[0] {
			small++
		}
		r.build = append(r.build, small)
		narrow = narrow && g.fitsNarrow(k)
	}
	return narrow
}

// fold takes the sums of the nodes that ask named. It reports whether the tree is complete.
func (g *growth) fold(all sums) (complete bool) {
	size := g.layout.size()
	if g.nodes[0].sum == nil {
		root := &g.nodes[0]
		root.sum = make([]float64, g.layout.width)
		own := sums{wide: root.sum}
		if own.set(all.at(0, g.layout.width)); g.splittable(root) {
			g.examine(root, all, nil, sums{})
		}
	}
	for len(g.splits) > g.waiting && all.has(size) {
		k := g.waiting
		g.waiting++
		if !g.waits(k) {
			continue
		}
		g.divide(k, all.next(size))
	}
	g.skip()
	g.step++
	for g.waiting == len(g.splits) {
		if !g.choose() {
			return true
		}
		g.skip()
	}
	return false
}

// skip passes over splits that need no histograms.
func (g *growth) skip() {
	for g.waiting < len(g.splits) && !g.waits(g.waiting) {
		g.waiting++
	}
}

// examine finds the best split of a node, from sums without the zero bins of sparse columns. Without one, the node is a
// leaf. If there is a larger node, whose histogram is the rest of the parent's, it does so for both. The parent's
// memory is the larger node's then, if that keeps its histogram, or spare.
func (g *growth) examine(n *node, all sums, larger *node, parent sums) {
	l, narrow := g.layout, all.narrow != nil
	first, second, rest := g.search.of(n.sum), best{}, parent
	if larger != nil {
		second, narrow = g.search.of(larger.sum), parent.narrow != nil
		if !g.keeps(larger) {
			rest = g.take(narrow)
		}
	}
	own, splittable, keeps := g.take(narrow), g.splittable(n), g.keeps(n)
	for i, at := range l.columns {
		c := &g.bins.Columns[at]
		from, size, place := (l.first[i]-1)*l.width, c.Bins()*l.width, 0 // nodes without a histogram keep one column
		if keeps {
			place = from
		}
		bins := all.at(from+l.width, size)
		if keeps || c.Sparse || narrow != (all.narrow != nil) {
			given := bins
			bins = own.at(place, size)
			bins.set(given)
		}
		if c.Sparse {
			l.complete(bins, n.sum, c)
		}
		if splittable {
			first.try(at, bins)
		}
		if larger != nil {
			left := rest.at(place, size)
			left.subtract(parent.at(from, size), bins)
			second.try(at, left)
		}
	}
	g.settle(n, &first, own)
	if larger != nil {
		if !g.keeps(larger) {
			g.free(parent)
		}
		g.settle(larger, &second, rest)
	}
}

// keeps reports whether a node keeps its histogram if it is open: its children may be split.
func (g *growth) keeps(n *node) bool { return n.depth+1 < g.cfg.Depth }

// settle gives a node its best split, and its histogram if it keeps one.
func (g *growth) settle(n *node, b *best, hist sums) {
	n.best, n.open = b.found, b.ok
	if !b.ok || !g.keeps(n) {
		g.free(hist)
		return
	}
	n.hist = hist
	if hist.wide != nil && !g.layout.weighted && (n.sum[0] <= mostNarrow || g.fit(hist.wide, true)) {
		n.hist = g.take(true)
		n.hist.set(hist)
		g.free(hist)
	}
}

// take returns memory for a histogram.
func (g *growth) take(narrow bool) sums {
	if size := g.layout.size() - g.layout.width; narrow {
		return sums{narrow: takeOf(&g.narrow, size)}
	} else {
		return sums{wide: takeOf(&g.wide, size)}
	}
}

// takeOf takes memory for so many numbers from what is spare, or makes it.
func takeOf[T int32 | float64](spare *[][]T, size int) []T {
	if n := len(*spare); n > 0 {
		last := (*spare)[n-1]
		if *spare = (*spare)[:n-1]; cap(last) >= size {
			return last[:size]
		}
	}
	return make([]T, size)
}

// free makes memory spare.
func (g *growth) free(hist sums) {
	if hist.narrow != nil {
		g.narrow = append(g.narrow, hist.narrow)
	} else if hist.wide != nil {
		g.wide = append(g.wide, hist.wide)
	}
}

// drop takes the histogram of a node away, which is no longer open.
func (g *growth) drop(n *node) {
	g.free(n.hist)
	n.hist, n.open = sums{}, false
}

// divide opens the children of split k, given the sums of the smaller one.
func (g *growth) divide(k int, all sums) {
	parent := &g.nodes[g.splits[k].node]
	small, large := g.children(k)
	rest := parent.hist
	parent.hist = sums{}
	g.examine(small, all, large, rest)
}

// choose splits the open nodes whose splits gain most: with growth by level, those for which the tree has leaves left;
// by leaf, one node. It reports whether it split any.
func (g *growth) choose() bool {
	var open []int
	for i := range g.nodes {
		if g.nodes[i].open {
			open = append(open, i)
		}
	}
	slices.SortFunc(open, func(a, b int) int {
		return cmp.Or(cmp.Compare(g.nodes[b].best.gain, g.nodes[a].best.gain), cmp.Compare(a, b))
	})
	room := g.cfg.Leaves - 1 - len(g.splits)
	if g.cfg.Grow == growLeaf {
		room = min(room, 1)
	}
	taken := open[:min(room, len(open))]
	if g.cfg.Grow == growLevel || g.cfg.Leaves-1-len(g.splits) <= len(taken) {
		for _, i := range open[len(taken):] {
			g.drop(&g.nodes[i])
		}
	}
	slices.Sort(taken)
	before := len(g.splits)
	for _, i := range taken {
		g.split(i)
	}
	for k := before; k < len(g.splits); k++ {
		if !g.waits(k) {
			g.drop(&g.nodes[g.splits[k].node])
		}
	}
	return len(taken) > 0
}

// split makes an open node an inner one.
func (g *growth) split(i int) {
	n := &g.nodes[i]
	n.open, n.inner = false, true
	left, right := n.best.left, slices.Clone(n.sum)
	for k, x := range left {
		right[k] -= x
	}
	g.splits = append(g.splits, division{i, n.best.column, n.best.bin})
	g.nodes = append(g.nodes, node{depth: n.depth + 1, sum: left}, node{depth: n.depth + 1, sum: right})
}

// finish returns the complete tree.
func (g *growth) finish(t *forest.Tree, labels int, loss float64) {
	t.Reset(labels)
	t.Loss, t.Evaluations = loss, g.search.thresholds
	for _, s := range g.splits {
		c := &g.bins.Columns[s.column]
		t.Split(s.node, c.Feature, float64(c.Cuts[s.bin]), g.nodes[s.node].best.gain)
	}
	for i := range g.nodes {
		n := &g.nodes[i]
		t.SetSamples(i, int(n.sum[0]))
		if !n.inner {
			g.search.leaf(t.Leaf(i), n.sum)
		}
	}
}

// List lists the fields of a tree at work, which has begun. Other sums follow from the root's and the splits.
func (g *growth) List(l *fields.List) {
	reading := l.Reading()
	waiting, splits, thresholds := uint64(g.waiting), uint64(len(g.splits)), g.search.thresholds
	l.Uint64(&g.step, &waiting, &splits, &thresholds)
	l.Check(splits < uint64(g.cfg.Leaves) && waiting <= splits && g.step <= splits+1 && (g.step > 0) == (splits > 0),
		"the saved state has a tree with %d splits in round %d, and the next one to wait is %d", splits, g.step, waiting)
	if reading && !l.Reading() || g.step == 0 {
		return
	}
	if reading {
		g.nodes[0].sum = make([]float64, g.layout.width)
	}
	l.Float64s(g.nodes[0].sum)
	for k := range int(splits) {
		at := uint64(0)
		if !reading {
			at = uint64(g.splits[k].node)
		}
		l.Uint64(&at)
		l.Check(at < uint64(len(g.nodes)) && !g.nodes[min(at, uint64(len(g.nodes)-1))].inner,
			"the saved state has a tree whose split %d is of node %d", k, at)
		if reading && !l.Reading() {
			return
		}
		if g.listBest(l, int(at)); reading {
			if !l.Reading() {
				return
			}
			g.split(int(at))
		}
	}
	for i := range g.nodes {
		n := &g.nodes[i]
		if !n.inner {
			l.Bool(&n.open)
		}
		if n.open {
			g.listBest(l, i)
		}
		if g.listHistogram(l, n); reading && !l.Reading() {
			return
		}
	}
	g.waiting, g.search.thresholds = int(waiting), thresholds
	l.Check(g.lawful(), "the saved state has a tree with too many or too few histograms")
}

// listBest lists the best split of a node.
func (g *growth) listBest(l *fields.List, i int) {
	n := &g.nodes[i]
	column, bin := uint64(n.best.column), uint64(n.best.bin)
	if l.Reading() {
		n.best.left = make([]float64, g.layout.width)
	}
	l.Uint64(&column, &bin)
	l.Float64(&n.best.gain)
	l.Float64s(n.best.left)
	l.Check(n.depth < g.cfg.Depth && column < uint64(len(g.bins.Columns)) &&
		bin < uint64(len(g.bins.Columns[min(column, uint64(len(g.bins.Columns)-1))].Cuts)) && n.best.gain-n.best.gain == 0,
		"the saved state has an impossible split of node %d: column %d, bin %d, gain %v", i, column, bin, n.best.gain)
	n.best.column, n.best.bin = int(column), int(bin)
}

// listHistogram lists the histogram of a node: its float64 sums, then its int32 sums. It has one type only.
func (g *growth) listHistogram(l *fields.List, n *node) {
	size := g.layout.size() - g.layout.width
	l.Known(&n.hist.wide, size)
	own := num.BytesI32(n.hist.narrow)
	l.Part(len(own), func(dst []byte) []byte { return append(dst, own...) }, func(b []byte) error {
		if len(b) == 0 {
			return nil
		}
		if len(b) != 4*size || n.hist.wide != nil || g.layout.weighted {
			return fmt.Errorf("a histogram has %d bytes of int32 sums, want %d", len(b), 4*size)
		}
		n.hist.narrow = slices.Clone(num.Int32s(b))
		return nil
	})
}

// lawful reports whether a split waits, and each node that has a histogram may have one: the split of an inner node
// waits, and another node is open and keeps its histogram.
func (g *growth) lawful() bool {
	if g.waiting == len(g.splits) || !g.waits(g.waiting) {
		return false
	}
	for k, d := range g.splits {
		if g.nodes[d.node].hist.none() == (k >= g.waiting && g.waits(k)) {
			return false
		}
	}
	for i := range g.nodes {
		if n := &g.nodes[i]; !n.inner && n.hist.none() == (n.open && g.keeps(n)) {
			return false
		}
	}
	return true
}
