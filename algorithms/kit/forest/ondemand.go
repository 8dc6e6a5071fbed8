package forest

import (
	"math/bits"
	"slices"
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
