package forest

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms/kit/binning"
	"github.com/coppice-ldl/coppice/internal/num"
)

// sprout is a node of a tree at work.
type sprout struct {
	path         uint64
	parent, left int // left: its left child, the right one follows; 0: it is not split
	column       int
	lower, upper int // see countedSplit
	total        int64
	copies       uint32
}

// growingTree is a tree at work. Node 0 is the root. Its counts are 0 until they are known.
type growingTree struct {
	number      uint32
	nodes       []sprout
	counts      []uint32 // nodes×classes: copies
	evaluations uint64
}

// ask is a node whose counts or rows are asked for.
type ask struct {
	tree, node int
	// parent has the counts of the node's parent, if its sibling gets what they have more than the node; nil: the sibling
	// is not waiting, or is asked for by itself.
	parent []float64
}

// growth is the trees at work. They wait for the counts of the nodes in open, the last ones first. Nodes in small have
// few rows: workers send the rows, and the trainer grows what is below them.
type growth struct {
	cfg     *Config
	classes int
	layouts *layouts
	search  *countedSearch
	rowSize int64 // bytes of an encoded row, about
	rowWork int64 // operations of smallNodes for a row and a level of a tree, about
	limits  growthLimits

	trees       []growingTree
	open, small []ask
	held        int   // numbers in the counts of open
	waiting     int64 // bytes of the rows of small, about
}

// growthLimits say how much a round asks for, about. No tree depends on them.
type growthLimits struct {
	trees   int   // at work: workers keep the node of each row for each of them
	numbers int   // counts of nodes
	bytes   int64 // rows of nodes
	work    int64 // operations on rows of nodes: the leader serves others, too
	held    int   // numbers that are kept to be subtracted from
	// small is a ratio: rows of a node are asked for if they have at most so many times the bytes of its counts. The
	// nodes below need counts, too.
	small int64
}

// usualLimits are the limits of jobs.
var usualLimits = growthLimits{trees: 8, numbers: 1 << 22, bytes: 1 << 25, work: 1 << 26, held: 1 << 22,
	small: 4}

// begin begins trees, of the numbers from first on.
func (g *growth) begin(first, trees int) {
	g.trees, g.open, g.small, g.held, g.waiting = make([]growingTree, trees), g.open[:0], g.small[:0], 0, 0
	for i := range g.trees {
		g.trees[i] = growingTree{number: uint32(first + i), nodes: []sprout{{path: 1}}, counts: make([]uint32, g.classes)}
	}
	for i := trees - 1; i >= 0; i-- {
		g.open = append(g.open, ask{tree: i})
	}
}

func (t *growingTree) countsOf(node, classes int) []uint32 { return t.counts[node*classes:][:classes] }

// splittable reports whether a node may be split: it is large enough and has several classes.
func (g *growth) splittable(t *growingTree, node int) bool {
	n := &t.nodes[node]
	if int64(n.copies) < int64(g.cfg.MinSamples) || bits.Len64(n.path)-1 >= g.cfg.MaxDepth {
		return false
	}
	classes := 0
	for _, n := range t.countsOf(node, g.classes) {
		if n > 0 {
			classes++
		}
	}
	return classes > 1
}

// sizeOf is how many numbers the counts of a node are.
func (g *growth) sizeOf(a *ask) int {
	t := &g.trees[a.tree]
	return g.layouts.numbersOf(g.layouts.layoutOf(t.number, t.nodes[a.node].path))
}

// isSmall reports whether the rows of a node are asked for.
func (g *growth) isSmall(a ask) bool {
	bytes, work := g.costOf(&a)
	return bytes <= min(g.limits.bytes, g.limits.small*8*int64(g.sizeOf(&a))) && work <= g.limits.work &&
		g.trees[a.tree].nodes[a.node].copies < knownNumbers
}

// costOf is what the rows of a node cost at most, about: their bytes, and the operations of growing what is below.
func (g *growth) costOf(a *ask) (bytes, work int64) {
	n := &g.trees[a.tree].nodes[a.node]
	levels := g.cfg.MaxDepth - (bits.Len64(n.path) - 1)
	// Up to two nodes below for each row count their classes.
	return int64(n.copies) * g.rowSize, int64(n.copies) * (g.rowWork*int64(levels) + 2*int64(g.classes))
}

// next returns the nodes that the next round is about, and how many numbers their counts are, or 0 if their rows are
// asked for.
func (g *growth) next() (asks []ask, numbers int) {
	if len(g.open) == 0 || g.waiting >= g.limits.bytes {
		n, bytes, work := 0, int64(0), int64(0)
		for n < len(g.small) {
			b, w := g.costOf(&g.small[len(g.small)-1-n])
			if bytes, work = bytes+b, work+w; n > 0 && (bytes > g.limits.bytes || work > g.limits.work) {
				break
			}
			n++
		}
		return g.small[len(g.small)-n:], 0
	}
	n := 0
	for n < len(g.open) {
		size := g.sizeOf(&g.open[len(g.open)-1-n])
		if n > 0 && numbers+size > g.limits.numbers {
			break
		}
		numbers, n = numbers+size, n+1
	}
	return g.open[len(g.open)-n:], numbers
}

// done reports whether all trees are complete.
func (g *growth) done() bool { return len(g.open) == 0 && len(g.small) == 0 }

var errCounts = fmt.Errorf("the counts of a node: %w", binning.ErrBins)

// checkCounts refuses complete counts of a node that are not whole numbers of copies, or whose columns do not have the
// copies of the node. The copies are the first counts; of other nodes than the root, they are known.
func (g *growth) checkCounts(a *ask, counts []float64, l *layout) error {
	t, n := &g.trees[a.tree], g.classes
	for k, x := range counts {
		if !(x >= 0 && x <= math.MaxUint32) || x != float64(uint32(x)) {
			return fmt.Errorf("%w: tree %d, node %d has %v copies of class %d in a bin", errCounts, t.number, a.node, x, k%n)
		}
	}
	copies := counts[:n]
	if a.node == 0 {
		all := 0.0
		for _, x := range copies {
			all += x
		}
		if all > math.MaxInt32 {
			return fmt.Errorf("%w: tree %d has %v copies, at most %d are possible", errCounts, t.number, all, math.MaxInt32)
		}
	} else {
		for c, known := range t.countsOf(a.node, n) {
			if copies[c] != float64(known) {
				return fmt.Errorf("%w: tree %d, node %d has %v copies of class %d, want %d", errCounts, t.number, a.node,
					copies[c], c, known)
			}
		}
	}
	sums := make([]float64, n)
	for i, at := range l.columns {
		c := &g.layouts.edges.Columns[at]
		if c.Sparse { // its zero bin has what the others lack
			continue
		}
		clear(sums)
		for block := counts[l.first[i]*n:][:c.Bins()*n]; len(block) > 0; block = block[n:] {
			for k, x := range block[:n] {
				sums[k] += x
			}
		}
		if !slices.Equal(sums, copies) {
			return fmt.Errorf("%w: tree %d, node %d: the bins of feature %d have %v copies by class, want %v", errCounts,
				t.number, a.node, c.Feature, sums, copies)
		}
	}
	return nil
}

// foldCounts takes the counts of the nodes that next returned. After an error, the growth cannot go on.
func (g *growth) foldCounts(sums []float64) error {
	asks, _ := g.next()
	asks = slices.Clone(asks)
	g.open = g.open[:len(g.open)-len(asks)]
	for i := range asks {
		a := &asks[i]
		g.held -= len(a.parent)
		t := &g.trees[a.tree]
		l := g.layouts.layoutOf(t.number, t.nodes[a.node].path)
		own := sums[:g.layouts.numbersOf(l)]
		sums = sums[len(own):]
		g.layouts.complete(own, l)
		if err := g.checkCounts(a, own, l); err != nil {
			return err
		}
		if a.node == 0 {
			for c, n := range own[:g.classes] {
				t.counts[c] = uint32(n)
				t.nodes[0].copies += uint32(n)
			}
			g.search.knows(int(t.nodes[0].copies))
		}
		g.examine(a.tree, a.node, own, l)
		if a.parent == nil {
			continue
		}
		for k, n := range own {
			if a.parent[k] -= n; a.parent[k] < 0 {
				return fmt.Errorf("%w: tree %d, node %d has %v copies of class %d more in a bin than its parent", errCounts,
					t.number, a.node, -a.parent[k], k%g.classes)
			}
		}
		g.examine(a.tree, sibling(a.node), a.parent, l)
	}
	return nil
}

// sibling returns the number of a node's sibling.
func sibling(node int) int {
	if node%2 == 1 {
		return node + 1
	}
	return node - 1
}

// examine splits a node of these counts if a split has a gain, and asks for the children that may be split in turn.
func (g *growth) examine(tree, node int, counts []float64, l *layout) {
	t := &g.trees[tree]
	if !g.splittable(t, node) {
		return
	}
	best, ok := g.search.find(t.countsOf(node, g.classes), counts, l, g.layouts.edges)
	if t.evaluations, g.search.evaluations = t.evaluations+g.search.evaluations, 0; !ok {
		return
	}
	t.splitNode(node, best)
	left := t.nodes[node].left
	var children []ask
	for _, child := range []int{left, left + 1} {
		if a := (ask{tree: tree, node: child}); !g.splittable(t, child) {
			continue
		} else if g.isSmall(a) {
			bytes, _ := g.costOf(&a)
			g.small, g.waiting = append(g.small, a), g.waiting+bytes
		} else {
			children = append(children, a)
		}
	}
	if n := len(counts); len(children) == 2 && g.layouts.sampler.everyFeature && g.held+n <= g.limits.held {
		if t.nodes[left+1].copies < t.nodes[left].copies {
			children[0] = children[1]
		}
		children[0].parent = slices.Clone(counts)
		g.held += n
		children = children[:1]
	}
	g.open = append(g.open, children...)
}

// splitNode splits a node.
func (t *growingTree) splitNode(node int, s *countedSplit) {
	classes := len(s.left)
	n := &t.nodes[node]
	n.left, n.column, n.lower, n.upper, n.total = len(t.nodes), s.column, s.lower, s.upper, s.total
	left, right := sprout{path: 2 * n.path, parent: node}, sprout{path: 2*n.path + 1, parent: node}
	for c, k := range t.countsOf(node, classes) {
		t.counts = append(t.counts, s.left[c])
		left.copies, right.copies = left.copies+s.left[c], right.copies+k-s.left[c]
	}
	for c, k := range t.countsOf(node, classes) {
		t.counts = append(t.counts, k-s.left[c])
	}
	t.nodes = append(t.nodes, left, right)
}

// stepsTo appends the steps from the root to a node.
func (t *growingTree) stepsTo(dst []step, node int) []step {
	from := len(dst)
	for node > 0 {
		p := &t.nodes[t.nodes[node].parent]
		dst = append(dst, step{p.column, p.lower, node != p.left})
		node = t.nodes[node].parent
	}
	slices.Reverse(dst[from:])
	return dst
}

// finish appends the complete trees in the form that exact trees have: nodes in the order in which a grower makes
// them.
func (g *growth) finish(trees []*Tree, parts *CountedParts, labels int) []*Tree {
	for i := range g.trees {
		f := finished{growingTree: &g.trees[i], edges: g.layouts.edges, classes: g.classes, of: parts, tree: new(Tree)}
		f.tree.Reset(labels)
		f.tree.Evaluations = f.evaluations
		f.emit(0, 0)
		if copies := f.nodes[0].copies; copies > 0 {
			f.tree.Loss /= float64(copies)
		}
		trees = append(trees, f.tree)
	}
	return trees
}

// finished writes a complete tree.
type finished struct {
	*growingTree
	edges   *edges
	classes int
	of      *CountedParts
	tree    *Tree
}

// emit makes node at of the tree of a node, and all below it.
func (f *finished) emit(at, node int) {
	n := &f.nodes[node]
	f.tree.samples[at] = n.copies
	if n.left == 0 {
		dst := f.tree.Leaf(at)
		if n.copies == 0 { // of a small dataset, no sample was drawn
			num.Fill(dst, 1/float32(len(dst)))
			return
		}
		f.tree.Loss += f.of.Leaf(dst, f.countsOf(node, f.classes), int(n.copies))
		return
	}
	f.tree.Split(at, f.edges.Columns[n.column].Feature, f.edges.threshold(n.column, n.lower, n.upper),
		(&split{total: n.total}).gain(int(n.copies)))
	left := int(f.tree.left[at])
	f.emit(left, n.left)
	f.emit(left+1, n.left+1)
}
