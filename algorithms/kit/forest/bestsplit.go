package forest

import "slices"

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
