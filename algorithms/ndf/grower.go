package ndf

import (
	"context"

	"github.com/coppice-ldl/coppice/algorithms/kit/forest"
	"github.com/coppice-ldl/coppice/internal/num"
)

// grower grows one tree at a time and owns all memory for that.
type grower struct {
	fitter  fitter
	source  source
	rows    []uint32 // distinct rows of the sample, those of a node together
	right   []uint32 // right halves during a partition
	pending []pendingNode
	sums    []float64 // by label
}

// pendingNode is a node that is not grown yet: its rows are rows[from:to].
type pendingNode struct {
	from, to int
	depth    int
	path     uint64
}

// newGrower returns a grower of trees on the table.
func newGrower(cfg *Config, seed uint64, t *table) *grower {
	g := &grower{
		source: source{Rows: t.Rows, features: t.features, classes: t.labels, sparse: t.sparse, class: t.class, counts: make([]uint32, t.Len())},
		sums:   make([]float64, t.labels),
	}
	g.fitter = fitter{cfg: cfg, keys: newKeys(seed), source: &g.source}
	return g
}

// grow grows tree number n. Nodes are grown in the order of their numbers, level by level.
func (g *grower) grow(ctx context.Context, n uint32) (*Tree, error) {
	draws := g.fitter.cfg.draws(g.source.Len())
	forest.Draw(g.source.counts, g.fitter.keys.bootstrap, n, draws)
	g.rows = g.rows[:0]
	for row, count := range g.source.counts {
		if count > 0 {
			g.rows = append(g.rows, uint32(row))
		}
	}
	g.source.order(g.rows)
	g.fitter.evaluations = 0
	tree := newTree(g.source.classes, g.fitter.cfg.inputs(g.source.features))
	g.pending = append(g.pending[:0], pendingNode{to: len(g.rows), path: 1})
	for at := 0; at < len(g.pending); at++ {
		if err := g.growNode(ctx, tree, n, at); err != nil {
			return nil, err
		}
	}
	tree.Evaluations = g.fitter.evaluations
	tree.Loss = max(0, tree.Loss/float64(draws))
	return tree, nil
}

// growNode makes node number at of the tree a leaf, or trains its network and adds its children.
func (g *grower) growNode(ctx context.Context, tree *Tree, number uint32, at int) error {
	p := g.pending[at]
	n := node{tree: number, path: p.path, rows: g.rows[p.from:p.to]}
	for _, row := range n.rows {
		n.copies += int(g.source.counts[row])
	}
	tree.SetSamples(at, n.copies)
	cfg := g.fitter.cfg
	if n.copies < cfg.MinSamples || p.depth >= cfg.MaxDepth || g.source.pure(n.rows) {
		g.makeLeaf(tree, at, &n)
		return nil
	}
	out, gain, err := g.fitter.fit(ctx, &n)
	if err != nil {
		return err
	}
	left := g.divide(n.rows, out)
	if left == 0 || left == len(n.rows) {
		g.makeLeaf(tree, at, &n)
		return nil
	}
	tree.addSplit(at, &g.fitter.net, gain)
	middle := p.from + left
	g.pending = append(g.pending, pendingNode{p.from, middle, p.depth + 1, 2 * p.path}, pendingNode{middle, p.to, p.depth + 1, 2*p.path + 1})
	return nil
}

// divide moves the rows with outputs above 0 to the front, and returns their number. The order
// of the rows on either side stays.
func (g *grower) divide(rows []uint32, out []float32) (left int) {
	g.right = g.right[:0]
	for i, row := range rows {
		if out[i] > 0 {
			rows[left] = row
			left++
		} else {
			g.right = append(g.right, row)
		}
	}
	copy(rows[left:], g.right)
	return left
}

// makeLeaf makes a node a leaf that predicts the mean distribution of its samples, and adds
// their K-L divergence from it to the tree's loss: Σ w Σ d ln d - n Σ m ln m with the mean m.
func (g *grower) makeLeaf(tree *Tree, at int, n *node) {
	clear(g.sums)
	for _, row := range n.rows {
		w := float64(g.source.counts[row])
		for c, d := range g.source.Label(row) {
			if d > 0 {
				v := float64(d)
				g.sums[c] += float64(w * v)
				tree.Loss += float64(w * float64(v*num.Log(v)))
			}
		}
	}
	dst := tree.Leaf(at)
	for c, sum := range g.sums {
		mean := sum / float64(n.copies)
		dst[c] = float32(mean)
		if mean > 0 {
			tree.Loss -= float64(sum * num.Log(mean))
		}
	}
}
