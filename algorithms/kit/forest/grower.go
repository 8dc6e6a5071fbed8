package forest

import (
	"context"
	"slices"

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

// sides says to which side of a split the rows of a node go.
type sides struct {
	side       []uint8  // by row: 1 if it goes to the right
	byPosition bool     // entries number the rows of their node by position, not as the sample does
	ranks      []uint64 // in place of side if byPosition: see markRanks
}

// onDemandColumns is the working memory of a grower that sorts columns on demand.
type onDemandColumns struct {
	enabled  bool
	member   []bool   // by row: it is in the node at work
	slot     []uint32 // by feature: its index among the features tried
	slots    []uint32 // of each key, as gathered
	gathered []uint64
	keys     []uint64 // by slot: the keys of the node's non-zeros
	start    []int    // of each slot in keys
	scratch  []uint64
}

// classify writes the class labels of a node's rows and reports true, or reports that the
// node is a leaf: it is too small or too deep, or its rows do not differ.
func (g *grower) classify(p *pendingNode) bool {
	n := p.copies
	if !g.cfg.Bootstrap { // copies are weights
		n = p.to - p.from
	}
	if n < g.cfg.MinSamples || p.depth >= g.cfg.MaxDepth {
		return false
	}
	return g.labeller.Classify(&g.sample, g.labellerNode(p))
}

// labellerNode describes a node for the labeller. The result is valid until the next call.
func (g *grower) labellerNode(p *pendingNode) *Node {
	g.nodeView = Node{Rows: g.rows[p.from:p.to], Copies: p.copies, Path: p.path}
	return &g.nodeView
}

// featureSampler draws the features that a node tries, without replacement: the first
// ones of a random permutation of all features, which is a function of (seed, tree, path).
type featureSampler struct {
	key          num.Key
	tree         uint32
	tried        int
	everyFeature bool // every feature is tried
	drawn        num.Permutation
	marked       []bool   // by feature: the node tries it; not set if inverse
	list         []uint32 // those marked, ascending
	inverse      bool     // tries computes drawn.Inverse
}

// begin prepares for a tree on q features.
func (c *featureSampler) begin(cfg *Config, tree uint32, q int) {
	c.tree, c.tried = tree, cfg.tried(q)
	c.everyFeature = c.tried == q
	if !c.everyFeature && len(c.marked) != q {
		c.marked, c.list = make([]bool, q), nil
	}
}

// draw draws the features of a node. The caller calls tries at most asks times: if these
// are few, tries computes the inverse permutation instead.
func (c *featureSampler) draw(path uint64, asks int) {
	if c.everyFeature {
		return
	}
	c.drawn = num.NewPermutation(c.key, path, c.tree, uint64(len(c.marked)))
	for _, f := range c.list {
		c.marked[f] = false
	}
	c.list = c.list[:0]
	if c.inverse = asks < c.tried; c.inverse {
		return
	}
	for i := range c.tried {
		f := c.drawn.At(uint64(i))
		c.marked[f] = true
		c.list = append(c.list, uint32(f))
	}
}

// sorted returns the features that draw drew, ascending.
func (c *featureSampler) sorted() []uint32 {
	slices.Sort(c.list)
	return c.list
}

// tries reports whether the node tries a feature.
func (c *featureSampler) tries(feature uint32) bool {
	switch {
	case c.everyFeature:
		return true
	case c.inverse:
		return c.drawn.Inverse(uint64(feature)) < uint64(c.tried)
	}
	return c.marked[feature]
}
