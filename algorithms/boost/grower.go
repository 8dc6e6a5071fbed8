package boost

import (
	"context"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms/forest"
)

// grower grows one tree at a time and owns all memory for that.
type grower struct {
	cfg       *Config
	width     int // of a leaf
	criterion Criterion

	table    *forest.Table
	rows     []uint32  // training rows, each node's together and ascending
	entries  []uint32  // of all columns, each node's part together
	segments []segment // each open node's together: the columns that it may be split by
	spare    []uint32  // right halves during a partition
	side     []uint8   // by row: 1 where the split sends it to the right
	search   search
	nodes    []node
	tree     forest.Tree
}

// node is a node of the tree at work: its rows are rows[from:to] and its columns
// segments[base:top].
type node struct {
	from, to  int
	base, top int
	depth     int
	sum       Pair
	choice    Choice
	open      bool    // it has a split and was not split yet
	inner     bool    // it was split
	gain      float64 // of split, in units
	split     split
}

func (n *node) rows() int { return n.to - n.from }

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
		g.divide(at, leaves+1 < g.cfg.Leaves, gradients)
	}
	g.finish(gradients)
	return &g.tree, nil
}

// begin makes the root.
func (g *grower) begin(t *training, gradients *Gradients, number int) {
	g.table = t.table
	g.rows, g.entries = g.rows[:0], g.entries[:0]
	for i := range gradients.Rows {
		g.rows = append(g.rows, uint32(i))
	}
	g.entries = append(g.entries, t.table.Entries()...)
	g.segments = append(g.segments[:0], t.roots...)
	g.spare = slices.Grow(g.spare[:0], gradients.Rows+forest.VectorSlack)[:gradients.Rows+forest.VectorSlack]
	g.side = slices.Grow(g.side[:0], gradients.Rows+forest.SideSlack)[:gradients.Rows+forest.SideSlack]
	g.criterion.Begin(gradients, number)
	s := &g.search
	s.pairs = slices.Grow(s.pairs[:0], gradients.Rows)[:gradients.Rows]
	s.l2, s.least, s.evaluations = max(1, float64(g.criterion.L2()*gradients.unit)), g.cfg.LeafRows, 0
	g.tree.Reset(g.width)
	g.tree.Loss = gradients.loss
	g.nodes = append(g.nodes[:0], node{to: gradients.Rows, top: len(g.segments)})
	g.evaluate(0, true)
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

// evaluate computes a node's sums, and finds its best split if it may have one.
func (g *grower) evaluate(at int, splits bool) {
	n, s := &g.nodes[at], &g.search
	g.tree.SetSamples(at, n.rows())
	n.sum, n.choice = g.criterion.Node(g.rows[n.from:n.to], s.pairs)
	if !splits {
		return
	}
	score := s.start(n.rows(), n.sum)
	for i := n.base; i < n.top; i++ {
		c := g.segments[i]
		if s.column(g.entries[c.from:c.to], c.from) {
			s.split.column, s.split.segment = c.column, i
		}
	}
	n.open, n.gain, n.split = s.found, s.best-score, s.split
}

// mayVary reports whether a node of so many rows at a depth may be split.
func (g *grower) mayVary(n *node) bool { return n.rows() >= 2*g.cfg.LeafRows && n.depth < maxDepth }

// divide splits a node. If on is not set, the children stay leaves.
func (g *grower) divide(at int, on bool, gradients *Gradients) {
	n := g.nodes[at]
	s := &n.split
	c := g.segments[s.segment]
	rows := g.rows[n.from:n.to]
	g.tree.Split(at, s.column, g.threshold(&n), n.gain/gradients.unit)
	forest.MarkSides(g.side, rows, g.entries[c.from:c.to], int(s.index-c.from), s.zeroLeft)
	middle := n.from + divideRows(rows, g.spare, g.side)
	left := node{from: n.from, to: middle, depth: n.depth + 1}
	right := node{from: middle, to: n.to, depth: n.depth + 1}
	onLeft, onRight := on && g.mayVary(&left), on && g.mayVary(&right)
	g.divideColumns(&n, &left, &right, onLeft, onRight)
	g.nodes[at].open, g.nodes[at].inner = false, true
	g.nodes = append(g.nodes, left, right)
	g.evaluate(len(g.nodes)-2, onLeft)
	g.evaluate(len(g.nodes)-1, onRight)
}

// divideRows moves the rows of the left child to the front, both sides in order, and returns their
// number.
func divideRows(rows, spare []uint32, side []uint8) int {
	n, r := 0, 0
	for _, row := range rows {
		if side[row] != 0 {
			spare[r] = row
			r++
			continue
		}
		rows[n] = row
		n++
	}
	copy(rows[n:], spare[:r])
	return n
}

// divideColumns makes the lists of the children's columns, of those children that may be split.
func (g *grower) divideColumns(n, left, right *node, onLeft, onRight bool) {
	left.base = len(g.segments)
	left.top = left.base
	if onLeft {
		for i := n.base; i < n.top; i++ {
			g.segments = append(g.segments, segment{})
		}
	}
	right.base = len(g.segments)
	for i := n.base; i < n.top && (onLeft || onRight); i++ {
		c := g.segments[i]
		entries := g.entries[c.from:c.to]
		var l, r int
		switch {
		case onLeft && onRight:
			l = forest.Partition(entries, g.spare, g.side)
			r = len(entries) - l
		case onLeft:
			l = forest.FilterSide(entries, g.side, 0)
		default:
			r = forest.FilterSide(entries, g.side, 1)
		}
		if onLeft && splittable(entries[:l], left.rows(), g.cfg.LeafRows) {
			g.segments[left.top] = segment{c.column, c.from, c.from + uint32(l)}
			left.top++
		}
		if onRight && splittable(entries[l:l+r], right.rows(), g.cfg.LeafRows) {
			g.segments = append(g.segments, segment{c.column, c.from + uint32(l), c.from + uint32(l+r)})
		}
	}
	right.top = len(g.segments)
}

// threshold returns the threshold of a node's split.
func (g *grower) threshold(n *node) float64 {
	s := &n.split
	c := g.segments[s.segment]
	lower, upper := forest.Neighbours(g.entries, c.from, c.to, s.index, s.zeroLeft, n.rows())
	return forest.Between(g.value(lower, c.column), g.value(upper, c.column))
}

// value returns the value of an entry of a column.
func (g *grower) value(entry, column uint32) float64 {
	if entry == forest.NoEntry {
		return 0
	}
	return float64(g.table.Value(g.entries[entry]&forest.RowMask, int(column)))
}

// finish makes the leaves.
func (g *grower) finish(gradients *Gradients) {
	for i := range g.nodes {
		if n := &g.nodes[i]; !n.inner {
			g.criterion.Leaf(g.tree.Leaf(i), n.sum, n.choice)
		}
	}
	g.tree.Evaluations = g.search.evaluations
	g.table = nil
}
