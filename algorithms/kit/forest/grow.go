package forest

import "context"

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

func (g *grower) makeLeaf(at int, p *pendingNode) {
	dst := g.tree.Leaf(at)
	g.tree.Loss += g.labeller.Leaf(dst, &g.sample, g.labellerNode(p))
}

// bestSplit returns the best split of a node (Eq. 3), and false where none has a
// gain.
func (g *grower) bestSplit(p *pendingNode) (split, bool) {
	s := &g.search
	if !s.start(g.rows[p.from:p.to], p.copies) {
		return split{}, false
	}
	if g.onDemand.enabled {
		g.features.draw(p.path, g.table.features)
		g.splitOnDemand(p)
	} else {
		g.features.draw(p.path, p.top-p.base)
		g.splitPresorted(p)
	}
	if !s.found {
		return split{}, false
	}
	c := g.segments[s.split.segment]
	s.split.lower, s.split.upper = Neighbours(g.entries, c.from, c.to, s.split.index, s.split.zeroLeft, p.to-p.from)
	return s.split, true
}
