package boost

import (
	"context"

	"github.com/coppice-ldl/coppice/algorithms/kit/forest"
)

// grower grows one tree at a time and owns all memory for that.
type grower struct {
	cfg       *Config
	width     int // of a leaf
	criterion Criterion

	training  *training
	gradients *Gradients
	rows      []uint32  // training rows, each node's together and ascending
	entries   []uint32  // of the sorted columns, each node's part together
	segments  []segment // each node's together: the sorted columns that it may be split by
	spare     []uint32  // right halves during a partition
	side      []uint8   // by row: 1 where the split sends it to the right
	search    search
	nodes     []node
	tree      forest.Tree
	idle      [][]bin // memory for bins
	kept      int     // nodes that have bins
	memory    int     // for bins, in bytes
}

func newGrower(v *Variant, c *Config, labels int) *grower {
	return &grower{cfg: c, width: v.width(labels), criterion: v.NewCriterion(c), memory: binMemory}
}

// grow grows tree number number of a round. The tree is valid until the next call.
func (g *grower) grow(ctx context.Context, t *training, gradients *Gradients, number int) (*forest.Tree, error) {
	g.begin(t, gradients, number)
	for leaves := 1; leaves < g.cfg.Leaves; leaves++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		at := g.next()
		if at < 0 {
			break
		}
		g.divide(at, leaves+1 < g.cfg.Leaves)
	}
	g.finish()
	return &g.tree, nil
}

// begin makes the root.
func (g *grower) begin(t *training, gradients *Gradients, number int) {
	for i := range g.nodes { // of a tree that was not finished
		g.dropBins(&g.nodes[i])
	}
	g.training, g.gradients = t, gradients
	n := gradients.Rows
	for i := range forest.Resized(&g.rows, n) {
		g.rows[i] = uint32(i)
	}
	g.entries = append(g.entries[:0], t.entries...)
	g.segments = append(g.segments[:0], t.segments...)
	forest.Resized(&g.spare, n+forest.VectorSlack)
	forest.Resized(&g.side, n+forest.SideSlack)
	g.criterion.Begin(gradients, number)
	s := &g.search
	forest.Resized(&s.pairs, n)
	s.l2, s.least, s.evaluations = max(1, float64(g.criterion.L2()*gradients.unit)), g.cfg.LeafRows, 0
	g.tree.Reset(g.width)
	g.tree.Loss = gradients.loss
	g.nodes = append(g.nodes[:0], node{to: n, top: len(g.segments), varies: g.cfg.LeafRows <= n/2})
	root := &g.nodes[0]
	g.choose(root, 0)
	if root.varies {
		g.addBins(root)
		g.findSplit(root)
	}
}

// next returns the open node whose split gains most, the first among ties; -1: none is open.
func (g *grower) next() int {
	best := -1
	for i := range g.nodes {
		if n := &g.nodes[i]; n.open && (best < 0 || n.gain > g.nodes[best].gain) {
			best = i
		}
	}
	return best
}

// choose computes the sums of node number at, and what its criterion chooses.
func (g *grower) choose(n *node, at int) {
	g.tree.SetSamples(at, n.rows())
	n.sum, n.choice = g.criterion.Node(g.rows[n.from:n.to], g.search.pairs)
}

// findSplit finds a node's best split.
func (g *grower) findSplit(n *node) {
	s := &g.search
	score := s.start(n.rows(), n.sum)
	for i := n.base; i < n.top; i++ {
		c := g.segments[i]
		s.at = place{column: c.column, list: i}
		s.sortedColumn(g.entries[c.from:c.to], c.from)
	}
	s.binnedColumns(g.training.binned, n.bins)
	if n.open = s.found; !n.open {
		g.dropBins(n)
		return
	}
	n.gain, n.split = s.best-score, s.split
	n.threshold = g.threshold(n)
	if g.kept*binBytes*len(n.bins) > g.memory {
		g.dropBins(n)
	}
}

// divide splits node number at. If on is not set, the children stay leaves.
func (g *grower) divide(at int, on bool) {
	g.nodes = append(g.nodes, node{}, node{})
	n, left, right := &g.nodes[at], &g.nodes[len(g.nodes)-2], &g.nodes[len(g.nodes)-1]
	n.open, n.inner = false, true
	g.tree.Split(at, n.split.column, n.threshold, n.gain/g.gradients.unit)
	g.markSides(n)
	rows := g.rows[n.from:n.to]
	middle := n.from + divideRows(rows, g.spare, g.side)
	*left = node{from: n.from, to: middle, depth: n.depth + 1}
	*right = node{from: middle, to: n.to, depth: n.depth + 1}
	for i, child := range []*node{left, right} {
		child.varies = on && child.rows() >= 2*g.cfg.LeafRows && child.depth < maxDepth
		g.choose(child, len(g.nodes)-2+i)
	}
	g.divideColumns(n, left, right)
	g.divideBins(n, left, right)
	for _, child := range []*node{left, right} {
		if child.varies {
			g.findSplit(child)
		}
	}
}

// markSides writes the side of each of the node's rows.
func (g *grower) markSides(n *node) {
	s, rows := &n.split, g.rows[n.from:n.to]
	if s.binned {
		g.training.binned.markSides(g.side, rows, g.training.table, s)
		return
	}
	c := g.segments[s.list]
	forest.MarkSides(g.side, rows, g.entries[c.from:c.to], int(s.index-c.from), s.zeroLeft)
}

// divideRows moves the rows of the left child to the front, both sides in order, and returns their
// number.
func divideRows(rows, spare []uint32, side []uint8) int {
	n, r := 0, 0
	for _, row := range rows {
		right := int(side[row])
		rows[n], spare[r] = row, row
		n += 1 - right
		r += right
	}
	copy(rows[n:], spare[:r])
	return n
}

// divideColumns makes the lists of the children's sorted columns, of those children that may be
// split.
func (g *grower) divideColumns(n, left, right *node) {
	left.base = len(g.segments)
	left.top = left.base
	if left.varies {
		g.segments = append(g.segments, g.segments[n.base:n.top]...) // room
	}
	right.base = len(g.segments)
	for i := n.base; i < n.top && (left.varies || right.varies); i++ {
		c := g.segments[i]
		entries := g.entries[c.from:c.to]
		var l, r int
		switch {
		case left.varies && right.varies:
			l = forest.Partition(entries, g.spare, g.side)
			r = len(entries) - l
		case left.varies:
			l = forest.FilterSide(entries, g.side, 0)
		default:
			r = forest.FilterSide(entries, g.side, 1)
		}
		if left.varies && splittable(entries[:l], left.rows(), g.cfg.LeafRows) {
			g.segments[left.top] = segment{c.column, c.from, c.from + uint32(l)}
			left.top++
		}
		if right.varies && splittable(entries[l:l+r], right.rows(), g.cfg.LeafRows) {
			g.segments = append(g.segments, segment{c.column, c.from + uint32(l), c.from + uint32(l+r)})
		}
	}
	right.top = len(g.segments)
}

// divideBins makes the bins of those children that may be split: of the smaller one from its rows, of
// the other one by subtraction where the node's bins are of the same choice.
func (g *grower) divideBins(n, left, right *node) {
	small, large := left, right
	if small.rows() > large.rows() {
		small, large = large, small
	}
	subtracts := large.varies && n.bins != nil && small.choice == n.choice && large.choice == n.choice
	if small.varies || subtracts {
		g.addBins(small)
	}
	switch {
	case subtracts:
		large.bins, n.bins = n.bins, nil
		subtract(large.bins, small.bins)
	case large.varies:
		g.addBins(large)
	}
	g.dropBins(n)
	if !small.varies {
		g.dropBins(small)
	}
}

// addBins adds up a node's bins from its rows.
func (g *grower) addBins(n *node) {
	b := g.training.binned
	if len(b.columns) == 0 {
		return
	}
	g.kept++
	if last := len(g.idle) - 1; last >= 0 {
		n.bins, g.idle = g.idle[last], g.idle[:last]
	}
	forest.Resized(&n.bins, len(b.entry))
	b.sum(n.bins, g.rows[n.from:n.to], g.search.pairs)
}

// dropBins gives up a node's bins.
func (g *grower) dropBins(n *node) {
	if n.bins != nil {
		g.kept--
		g.idle = append(g.idle, n.bins)
		n.bins = nil
	}
}

// threshold returns the threshold of a node's split: between the nearest values of its rows.
func (g *grower) threshold(n *node) float64 {
	s, t := &n.split, g.training.table
	if s.binned {
		b := g.training.binned
		return forest.Between(b.value(t, s.column, s.lower), b.value(t, s.column, s.upper))
	}
	c := g.segments[s.list]
	lower, upper := forest.Neighbours(g.entries, c.from, c.to, s.index, s.zeroLeft, n.rows())
	return forest.Between(g.value(lower, c.column), g.value(upper, c.column))
}

// value returns the value of an entry of a sorted column.
func (g *grower) value(entry, column uint32) float64 {
	if entry == forest.NoEntry {
		return 0
	}
	return float64(g.training.table.Value(g.entries[entry]&forest.RowMask, int(column)))
}

// finish makes the leaves.
func (g *grower) finish() {
	for i := range g.nodes {
		n := &g.nodes[i]
		g.dropBins(n)
		if !n.inner {
			g.criterion.Leaf(g.tree.Leaf(i), n.sum, n.choice)
		}
	}
	g.tree.Evaluations = g.search.evaluations
	g.training, g.gradients = nil, nil
}
