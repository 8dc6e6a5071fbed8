package forest

import (
	"context"

	"github.com/coppice-ldl/coppice/internal/num"
)

// grower grows one tree at a time and owns all memory for that.
type grower struct {
	cfg      Config
	classes  int // class labels that the labeller gives
	labeller Labeller
	sampling num.Key // of bootstrap samples

	ctx    context.Context
	table  *Table
	sample BootstrapSample
	local  []uint32 // by training row: its number in the sample, or absent
	origin []uint32 // by row of the sample: the training row

	rows       []uint32 // rows of the sample, each node's together and ascending
	columns    columns  // of the sample
	sorter     sorter
	entries    []uint32  // those of columns, each node's part together; of a lazy grower, one column
	segments   []segment // a stack: the columns that vary in the node at work
	spare      []uint32  // right halves during a partition
	sides                // of the split at work
	search     search
	features   featureSampler
	onDemand   onDemandColumns
	nodeView   Node  // handed to the labeller
	tree       *Tree // the tree at work
	subtrees   subtrees
	sinceCheck int // nodes since ctx was looked at
}

// subtrees says which nodes a grower gives to an inner grower, which copies what belongs to the node's rows and numbers
// them from 0. A grower of many rows reads labels and weights from all over the memory, also for a node of
// few rows, and it renumbers the entries of each node. The tree is the same.
type subtrees struct {
	// A node is given to the inner grower if its rows, times fraction, are at most the grower's rows, and these are
	// more than few. The entries of such a grower number rows by their position in the node.
	fraction, few int
	newLabeller   func() Labeller // for the inner grower
	inner         *grower         // nil until a node is given to it
}

// With these numbers what a grower reads by row fits the cache if it has no inner grower, and all inner growers take
// a fifteenth of the memory.
const (
	innerFraction = 16
	fewRows       = 1 << 16
)

// segment is the part of a sorted column that belongs to a node: entries[from:to].
type segment struct{ column, from, to uint32 }

// pendingNode is a node that is not grown yet: its rows are rows[from:to] and its columns
// segments[base:top].
type pendingNode struct {
	from, to  int
	copies    int
	depth     int
	path      uint64
	base, top int
	splits    bool // it may be split: not known to be a leaf
}

// grow grows tree number n on t. The tree is valid until the next call.
func (g *grower) grow(ctx context.Context, t *Table, n uint32) (*Tree, error) {
	g.ctx = ctx
	root := g.begin(t, n)
	g.tree.Reset(t.labels)
	if err := g.growNode(0, &root); err != nil {
		return nil, err
	}
	g.tree.Evaluations = g.search.evaluations
	g.tree.Loss /= float64(t.draws)
	g.ctx, g.table = nil, nil
	return g.tree, nil
}

// begin prepares for tree number n on t and returns its root.
func (g *grower) begin(t *Table, n uint32) pendingNode {
	g.table = t
	g.drawSample(t, n)
	g.features.begin(&g.cfg, n, t.features)
	g.onDemand.begin(&g.features, len(g.rows), t.features)
	g.chooseNumbers()
	g.fillColumns(t)
	g.labeller.Begin(&g.sample)
	g.search.begin(g, t)
	root := pendingNode{to: len(g.rows), copies: t.draws, path: 1, top: len(g.segments)}
	root.splits = g.classify(&root)
	return root
}

// chooseNumbers chooses how entries number the rows of a node. At the root both numbers of a row are the same.
func (g *grower) chooseNumbers() {
	g.byPosition = len(g.rows) > g.subtrees.few && !g.onDemand.enabled
	if g.byPosition {
		Resized(&g.ranks, len(g.rows)/rankedRows+1)
	}
}

// growNode makes node number at of the tree, and all below it (Algorithm 1 of Chen et al.
// 2018).
func (g *grower) growNode(at int, p *pendingNode) error {
	if g.sinceCheck++; g.sinceCheck >= 256 {
		g.sinceCheck = 0
		if err := g.ctx.Err(); err != nil {
			return err
		}
	}
	g.tree.samples[at] = uint32(p.copies)
	if !p.splits {
		g.makeLeaf(at, p)
		return nil
	}
	if g.byPosition && g.subtrees.fraction*(p.to-p.from) <= len(g.origin) {
		return g.growSubtree(at, p)
	}
	best, ok := g.bestSplit(p)
	if !ok {
		g.makeLeaf(at, p)
		return nil
	}
	g.tree.Split(at, best.column, g.threshold(p, &best), best.gain(p.copies))
	left, right := g.divide(p, &best)
	if err := g.growNode(int(g.tree.left[at]), &left); err != nil {
		return err
	}
	return g.growNode(int(g.tree.left[at])+1, &right)
}

// growSubtree makes node number at of the tree, and all below it, by the inner grower.
func (g *grower) growSubtree(at int, p *pendingNode) error {
	u := &g.subtrees
	if u.inner == nil {
		u.inner = &grower{cfg: g.cfg, classes: g.classes, labeller: u.newLabeller(), tree: g.tree, subtrees: *u}
		u.inner.features.key = g.features.key
	}
	root := u.inner.adopt(g, p)
	err := u.inner.growNode(at, &root)
	g.search.evaluations += u.inner.search.evaluations
	u.inner.ctx, u.inner.table = nil, nil
	return err
}

// adopt prepares for the subtree of a node of another grower, and returns the node.
func (g *grower) adopt(outer *grower, p *pendingNode) pendingNode {
	g.ctx, g.table = outer.ctx, outer.table
	rows := outer.rows[p.from:p.to]
	s, of := &g.sample, &outer.sample
	s.Tree = of.Tree
	g.roomFor(len(rows), of.Width, len(of.RowValues) > 0)
	g.chooseNumbers()
	for i, row := range rows {
		g.origin[i], s.Weight[i] = outer.origin[row], of.Weight[row]
		copy(s.Label(uint32(i)), of.Label(row))
		if len(of.RowValues) > 0 {
			s.RowValues[i] = of.RowValues[row]
		}
	}
	g.labeller.Begin(s)
	for i, row := range rows {
		s.Class[i] = of.Class[row]
	}
	g.features.begin(&g.cfg, s.Tree, g.table.features)
	g.search.begin(g, g.table)

	columns, n := outer.segments[p.base:p.top], uint32(0)
	for _, c := range columns {
		n += c.to - c.from
	}
	Resized(&g.entries, int(n))
	Resized(&g.segments, len(columns))
	n = 0
	for i, c := range columns {
		g.segments[i] = segment{c.column, n, n + c.to - c.from}
		n += uint32(copy(g.entries[n:], outer.entries[c.from:c.to])) // positions in the node are the new numbers
	}
	return pendingNode{to: len(rows), copies: p.copies, depth: p.depth, path: p.path, top: len(g.segments), splits: true}
}

// classify writes the class labels of a node's rows and reports true, or reports that the
// node is a leaf: it is too small or too deep, or its rows do not differ.
func (g *grower) classify(p *pendingNode) bool {
	if p.copies < g.cfg.MinSamples || p.depth >= g.cfg.MaxDepth {
		return false
	}
	return g.labeller.Classify(&g.sample, g.labellerNode(p))
}

// labellerNode describes a node for the labeller. The result is valid until the next call.
func (g *grower) labellerNode(p *pendingNode) *Node {
	g.nodeView = Node{Rows: g.rows[p.from:p.to], Copies: p.copies, Path: p.path}
	return &g.nodeView
}

func (g *grower) makeLeaf(at int, p *pendingNode) {
	dst := g.tree.Leaf(at)
	g.tree.Loss += g.labeller.Leaf(dst, &g.sample, g.labellerNode(p))
}

// threshold returns the threshold of a node's split.
func (g *grower) threshold(p *pendingNode, s *split) float64 {
	lower, upper := 0.0, 0.0 // of implicit zeros
	if s.lower != NoEntry {
		lower = g.valueAt(p, s.lower, s.column)
	}
	if s.upper != NoEntry {
		upper = g.valueAt(p, s.upper, s.column)
	}
	return Between(lower, upper)
}

// Between returns the threshold between two values of a column: half way, or the upper value if
// that rounds to the lower one.
func Between(lower, upper float64) float64 {
	t := float64((lower + upper) / 2)
	if !(t > lower) {
		t = upper
	}
	return t
}

// valueAt returns the value of an entry of a node's column.
func (g *grower) valueAt(p *pendingNode, entry, column uint32) float64 {
	row := g.entries[entry] & RowMask
	if g.byPosition {
		row = g.rows[p.from+int(row)]
	}
	return float64(g.table.Value(g.origin[row], int(column)))
}
