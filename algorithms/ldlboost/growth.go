package ldlboost

import (
	"cmp"
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
	hist  []float64 // sums by bin, as layout says; nil: not needed, or not known yet
	best  split     // with hist
	inner bool
}

// growth is a tree at work. A node is open if it has a histogram and is not split: its best split gains something.
// Of the last splits, some wait for the histograms of their children.
type growth struct {
	cfg    *Config
	rows   int // of the dataset
	search *search
	bins   *binning.Bins
	layout *layout

	spare   [][]float64 // memory of histograms
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
	if small, _ := g.children(k); small.sum[0] <= mostNarrow {
		return true
	}
	hist, l := g.nodes[g.splits[k].node].hist, g.layout
	for i, at := range l.columns {
		c := &g.bins.Columns[at]
		for bin := range c.Bins() {
			if hist[(l.first[i]+bin)*l.width] > mostNarrow && !(c.Sparse && bin == c.Zero) {
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
		if all.copyTo(root.sum, 0); g.splittable(root) {
			g.examine(root, all, nil, nil)
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

// examine gives a node its histogram, from sums without the zero bins of sparse columns, and finds its best split.
// Without one, the node is a leaf. If there is a larger node, whose histogram is the rest of the parent's, it does so
// for both, and writes the rest over the parent's.
func (g *growth) examine(n *node, all sums, larger *node, parent []float64) {
	l := g.layout
	own := g.take()
	copy(own[:l.width], n.sum)
	first, second := g.search.of(own[:l.width]), best{}
	if larger != nil {
		num.AddScaled64(parent[:l.width], -1, own[:l.width])
		second = g.search.of(parent[:l.width])
	}
	splittable := g.splittable(n)
	for i, at := range l.columns {
		c := &g.bins.Columns[at]
		from, to := l.first[i]*l.width, (l.first[i]+c.Bins())*l.width
		bins := own[from:to]
		all.copyTo(bins, from)
		if c.Sparse {
			l.complete(bins, own[:l.width], c)
		}
		if splittable {
			first.column(at, bins)
		}
		if larger != nil {
			num.AddScaled64(parent[from:to], -1, bins)
			second.column(at, parent[from:to])
		}
	}
	g.settle(n, &first, own)
	if larger != nil {
		g.settle(larger, &second, parent)
	}
}

// settle gives a node its best split, and its histogram if there is one.
func (g *growth) settle(n *node, b *best, hist []float64) {
	n.best = b.found
	if b.ok {
		n.hist = hist
	} else {
		g.spare = append(g.spare, hist)
	}
}

// take returns memory for a histogram.
func (g *growth) take() []float64 {
	size := g.layout.size()
	if n := len(g.spare); n > 0 {
		hist := g.spare[n-1]
		if g.spare = g.spare[:n-1]; cap(hist) >= size {
			return hist[:size]
		}
	}
	return make([]float64, size)
}

// drop takes the histogram of a node away.
func (g *growth) drop(n *node) {
	if n.hist != nil {
		g.spare = append(g.spare, n.hist)
		n.hist = nil
	}
}

// divide opens the children of split k, given the sums of the smaller one.
func (g *growth) divide(k int, all sums) {
	parent := &g.nodes[g.splits[k].node]
	small, large := g.children(k)
	rest := parent.hist
	parent.hist = nil
	g.examine(small, all, large, rest)
}

// choose splits the open nodes whose splits gain most: with growth by level, those for which the tree has leaves left;
// by leaf, one node. It reports whether it split any.
func (g *growth) choose() bool {
	var open []int
	for i := range g.nodes {
		if n := &g.nodes[i]; n.hist != nil && !n.inner {
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
	n.inner = true
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

// List lists the fields of a tree at work, which has begun. Sums and best splits follow from the splits and the
// histograms.
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
		if g.listSplit(l, k, reading); reading && !l.Reading() {
			return
		}
	}
	for i := range g.nodes {
		n := &g.nodes[i]
		if l.Known(&n.hist, g.layout.size()); reading && !l.Reading() {
			return
		}
		if reading && n.hist != nil && !n.inner {
			b := g.search.of(n.hist[:g.layout.width])
			for i, at := range g.layout.columns {
				c := &g.bins.Columns[at]
				b.column(at, n.hist[g.layout.first[i]*g.layout.width:][:c.Bins()*g.layout.width])
			}
			hist := n.hist
			n.hist = nil
			g.settle(n, &b, hist)
			l.Check(n.hist != nil, "the saved state has a histogram of node %d, which cannot be split", i)
		}
	}
	g.waiting, g.search.thresholds = int(waiting), thresholds
	l.Check(g.lawful(), "the saved state has a tree with too many or too few histograms")
}

// listSplit lists split k.
func (g *growth) listSplit(l *fields.List, k int, reading bool) {
	var at [3]uint64
	var best split
	if reading {
		best.left = make([]float64, g.layout.width)
	} else {
		d := g.splits[k]
		at, best = [3]uint64{uint64(d.node), uint64(d.column), uint64(d.bin)}, g.nodes[d.node].best
	}
	l.Uint64(&at[0], &at[1], &at[2])
	l.Float64(&best.gain)
	l.Float64s(best.left)
	if !l.Reading() {
		return
	}
	ok := at[0] < uint64(len(g.nodes)) && !g.nodes[at[0]].inner && g.nodes[at[0]].depth < g.cfg.Depth &&
		at[1] < uint64(len(g.bins.Columns)) && at[2] < uint64(len(g.bins.Columns[at[1]].Cuts)) && best.gain-best.gain == 0
	l.Check(ok, "the saved state has a tree whose split %d is not possible: node %d, column %d, bin %d, gain %v", k, at[0],
		at[1], at[2], best.gain)
	if ok {
		best.column, best.bin = int(at[1]), int(at[2])
		g.nodes[at[0]].best = best
		g.split(int(at[0]))
	}
}

// lawful reports whether a split waits, and the inner nodes that have histograms are those whose splits wait.
func (g *growth) lawful() bool {
	if g.waiting == len(g.splits) || !g.waits(g.waiting) {
		return false
	}
	for k, d := range g.splits {
		if (g.nodes[d.node].hist != nil) != (k >= g.waiting && g.waits(k)) {
			return false
		}
	}
	return true
}
