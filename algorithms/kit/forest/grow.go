package forest

import (
	"context"
	"math/bits"
	"slices"
	"unsafe"

	"github.com/coppice-ldl/coppice/internal/num"
)

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

// drawSample draws the bootstrap sample of a tree (Algorithm 2 of Chen et al. 2018):
// t.draws training rows with replacement. Without bootstrap, the sample has all rows.
func (g *grower) drawSample(t *Table, tree uint32) {
	counts := Resized(&g.local, len(t.rows))
	if t.copies != nil {
		copy(counts, t.copies)
	} else {
		Draw(counts, t.weights, g.sampling, tree, t.draws)
	}
	g.sample.Tree = tree
	g.numberRows(t)
}

// roomFor makes room for what is stored of each of n rows with so many labels, and lists the rows. valued says
// whether rows have a Variant.RowValue.
func (g *grower) roomFor(n, labels int, valued bool) {
	s := &g.sample
	s.Width, s.RowValues = labels, s.RowValues[:0]
	Resized(&s.Labels, n*labels)
	Resized(&s.Weight, n)
	Resized(&s.Class, n)
	if valued {
		Resized(&s.RowValues, n)
	}
	Resized(&g.origin, n)
	Resized(&g.side, n+SideSlack)
	Resized(&g.spare, n+VectorSlack)
	for i := range Resized(&g.rows, n) {
		g.rows[i] = uint32(i)
	}
}

// numberRows gives each distinct row of the sample its local number, in place of how often it was drawn, and
// copies the rows' labels.
func (g *grower) numberRows(t *Table) {
	distinct := 0
	for _, count := range g.local {
		if count > 0 {
			distinct++
		}
	}
	s, local := &g.sample, g.local
	g.roomFor(distinct, t.labels, t.rowValues != nil)
	distinct = 0
	for i, count := range local {
		local[i] = absent
		if count > 0 {
			row := uint32(distinct)
			distinct++
			local[i], g.origin[row], s.Weight[row] = row, uint32(i), count
			copy(s.Label(row), t.Label(uint32(i)))
			if t.rowValues != nil {
				s.RowValues[row] = t.rowValues[i]
			}
		}
	}
}

// absent stands for the local number of a training row that is not in the sample.
const absent = 1<<32 - 1

// fillColumns makes the sample's sorted columns, and a segment for each column with at least
// two values. If columns are sorted on demand, it makes none.
func (g *grower) fillColumns(t *Table) {
	g.segments = g.segments[:0]
	if g.onDemand.enabled {
		return
	}
	g.entries = nil // otherwise columns.sort cannot free the entries of the last tree
	if t.columns.entries == nil {
		g.columns.sort(t, g.origin, &g.sorter)
	} else {
		g.columns.selectSample(&t.columns, g.local, len(g.origin), len(t.rows))
	}
	for c := range t.features {
		if Varies(g.columns.column(c), len(g.origin)) {
			g.segments = append(g.segments, segment{uint32(c), uint32(g.columns.start[c]), uint32(g.columns.start[c+1])})
		}
	}
	g.entries = g.columns.entries
}

// selectSample sets c to the columns of a bootstrap sample. all are the columns of all
// training rows. local has the local number of each training row, or absent. distinct is
// the number of distinct rows of the sample, rows the number of training rows.
func (c *columns) selectSample(all *columns, local []uint32, distinct, rows int) {
	share := float64(distinct) / float64(rows)
	c.entries = slices.Grow(c.entries[:0], int(1.02*share*float64(len(all.entries)))+rows) // an estimate
	c.start = append(c.start[:0], 0)
	for i := range len(all.start) - 1 {
		column := all.column(i)
		c.entries = slices.Grow(c.entries, len(column))
		c.entries = selectDrawn(c.entries, column, local)
		c.start = append(c.start, len(c.entries))
	}
}

// selectDrawn appends to dst the entries of a sorted column whose rows are in the sample,
// with the rows' local numbers. An entry of the result has the flag NewValue if the entry in
// column has the flag, or one of the entries that were left out just before it. dst must have
// room for all of column.
func selectDrawn(dst, column, local []uint32) []uint32 {
	n := len(dst)
	dst = dst[:n+len(column)]
	done, kept, isNew := startSelectDrawn(dst[n:], column, local)
	n += kept
	for _, e := range column[done:] {
		isNew |= e & NewValue
		row := local[e&RowMask]
		dst[n] = row | e&Positive | isNew
		if row != absent {
			n++
			isNew = 0
		}
	}
	return dst[:n]
}

//go:noescape
func selectDrawnAVX2(dst, column *uint32, n int, local *uint32, order *[256]uint64) (kept int, isNew uint32)

// startSelectDrawn does the first entries of selectDrawn, as many as fill whole vectors.
func startSelectDrawn(dst, column, local []uint32) (done, kept int, isNew uint32) {
	done = num.WholeVectors(len(column))
	if num.Accelerated && done > 0 {
		kept, isNew = selectDrawnAVX2(unsafe.SliceData(dst), unsafe.SliceData(column), done, unsafe.SliceData(local),
			&num.FrontOrder)
	}
	return done, kept, isNew << 31
}

// If a node tries few of the features, dividing all sorted columns among the nodes costs
// more than it saves. The grower then sorts a node's columns when the node tries them.

// onDemandShare is the least ratio of all features to the features tried at which columns
// are sorted on demand.
const onDemandShare = 4

// begin prepares for a tree of rows rows.
func (z *onDemandColumns) begin(c *featureSampler, rows, features int) {
	z.enabled = onDemandShare*c.tried <= features
	if !z.enabled {
		return
	}
	clear(Resized(&z.member, rows))
	Resized(&z.slot, features)
}

// splitOnDemand searches the best split in columns that are sorted on demand. It leaves
// the column of the best split as the only segment.
func (g *grower) splitOnDemand(p *pendingNode) {
	z, s, rows := &g.onDemand, &g.search, g.rows[p.from:p.to]
	tried := g.features.sorted()
	fromRows := g.rowsAreCheaper(rows, tried)
	if fromRows {
		z.gather(g, rows, tried)
	} else {
		z.mark(rows, true)
		defer z.mark(rows, false)
	}
	for i, c := range tried {
		g.collectColumn(i, c, fromRows)
		if Varies(g.entries, len(rows)) {
			g.tryColumn(segment{c, 0, uint32(len(g.entries))}, i, len(rows))
		}
	}
	if s.found {
		g.collectColumn(s.split.segment, s.split.column, fromRows)
		g.segments = append(g.segments[:0], segment{s.split.column, 0, uint32(len(g.entries))})
		s.split.segment = 0
	}
}

func (z *onDemandColumns) mark(rows []uint32, in bool) {
	for _, row := range rows {
		z.member[row] = in
	}
}

// rowsAreCheaper estimates whether sorting the values of the node's rows is less
// work than passing over whole columns.
func (g *grower) rowsAreCheaper(rows, tried []uint32) bool {
	t, whole := g.table, 0
	if t.columns.entries == nil {
		return true
	}
	for _, c := range tried {
		whole += len(t.columns.column(int(c)))
	}
	width := len(tried)
	if t.shards[0].Sparse {
		width = t.nonZero
	}
	return len(rows)*width*(4+bits.Len(uint(len(rows)))) < whole
}

// gather collects the keys of the tried features' non-zeros in the node's rows, by
// slot.
func (z *onDemandColumns) gather(g *grower, rows, tried []uint32) {
	clear(Resized(&z.start, len(tried)+1))
	for i, c := range tried {
		z.slot[c] = uint32(i)
	}
	z.slots, z.gathered = z.slots[:0], z.gathered[:0]
	for _, row := range rows {
		shard, pos := g.table.At(g.origin[row])
		if shard.Sparse {
			columns, values := shard.NonZeros(pos)
			for i, c := range columns {
				if g.features.marked[c] {
					z.add(z.slot[c], values[i], row)
				}
			}
			continue
		}
		x := shard.Dense(pos)
		for i, c := range tried {
			z.add(uint32(i), x[c], row)
		}
	}
	for i := range tried {
		z.start[i+1] += z.start[i]
	}
	z.bySlot(len(tried))
}

func (z *onDemandColumns) add(slot uint32, x float32, row uint32) {
	if x != 0 {
		z.slots = append(z.slots, slot)
		z.gathered = append(z.gathered, makeKey(x, row))
		z.start[slot+1]++
	}
}

// bySlot moves the gathered keys to keys, slot after slot.
func (z *onDemandColumns) bySlot(slots int) {
	keys := Resized(&z.keys, len(z.gathered))
	for i, slot := range z.slots {
		keys[z.start[slot]] = z.gathered[i]
		z.start[slot]++
	}
	copy(z.start[1:], z.start[:slots])
	z.start[0] = 0
}

// collectColumn writes the node's entries of a tried column to g.entries, sorted.
func (g *grower) collectColumn(slot int, column uint32, fromRows bool) {
	z := &g.onDemand
	if fromRows {
		keys := z.keys[z.start[slot]:z.start[slot+1]]
		sorted, _ := sortKeys(keys, Resized(&z.scratch, len(keys)))
		writeEntries(Resized(&g.entries, len(keys)), sorted)
		return
	}
	g.entries = g.entries[:0]
	isNew := uint32(0)
	for _, e := range g.table.columns.column(int(column)) {
		isNew |= e & NewValue
		if row := g.local[e&RowMask]; row != absent && z.member[row] {
			g.entries = append(g.entries, row|e&Positive|isNew)
			isNew = 0
		}
	}
}

// begin prepares for a tree.
func (s *search) begin(g *grower, t *Table) {
	s.xlogx, s.evaluations = t.xlogx, 0
	s.adaptive, s.alpha, s.beta = g.cfg.Step == stepAdaptive, g.cfg.Alpha, g.cfg.Beta
	s.class, s.weight, s.byPosition = g.sample.Class, g.sample.Weight, g.byPosition
	if g.classes == 2 {
		Resized(&s.binary.packed, len(g.rows))
		s.binary.narrow = s.binary.narrow[:0]
		if len(g.rows) >= leastNarrow && slices.Max(s.weight) <= mostNarrow {
			Resized(&s.binary.narrow, len(g.rows))
		}
	} else {
		s.multiclass.shape(g.classes)
	}
}

// splitPresorted tries the columns of the node's list.
func (g *grower) splitPresorted(p *pendingNode) {
	s, rows := &g.search, p.to-p.from
	lone := s.multiclass.classes == 0 && !s.adaptive && rows > 1
	for i, c := range g.segments[p.base:p.top] {
		switch {
		case !g.features.everyFeature && !g.features.tries(c.column):
		case lone && c.to-c.from == 1 && g.entries[c.from]&Positive != 0:
			if s.binaryLone(g.entries[c.from], c.from) {
				s.split.column, s.split.segment = c.column, p.base+i
			}
		default:
			g.tryColumn(c, p.base+i, rows)
		}
	}
}

// tryColumn tries the thresholds of a column, whose entries in a node of so many rows are c. at
// is where the segment will be found if one of them is the best.
func (g *grower) tryColumn(c segment, at, rows int) {
	s, entries := &g.search, g.entries[c.from:c.to]
	before := s.best
	s.trying, s.next, s.zeroLeft = c, 1, false
	if s.multiclass.classes == 0 {
		s.binaryColumn(entries, c.from, rows)
	} else {
		s.multiclassColumn(entries, c.from, rows)
	}
	if s.best < before {
		s.split.column, s.split.segment = c.column, at
	}
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
