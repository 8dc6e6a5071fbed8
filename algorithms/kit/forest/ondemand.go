package forest

import (
	"math/bits"
	"slices"

	"github.com/coppice-ldl/coppice/internal/num"
)

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
