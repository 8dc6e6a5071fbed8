package forest

import (
	"slices"

	"github.com/coppice-ldl/coppice/internal/num"
)

// split is a way to divide a node: the entries of a column before index go left,
// the others right.
type split struct {
	column   uint32
	segment  int    // where the column's segment stands on the stack
	index    uint32 // of the first entry on the right; the segment's end: none
	zeroLeft bool   // rows without an entry go left
	lower    uint32 // the last entry on the left, or NoEntry: an implicit zero
	upper    uint32 // the first entry on the right, or NoEntry
	total    int64  // gain times the node's samples, in units of xlogx
}

// NoEntry stands for the implicit zeros of a sparse column.
const NoEntry = 1<<32 - 1

// gain returns the split's gain in nats (Eq. 2).
func (s *split) gain(copies int) float64 {
	return float64(s.total) / nat / float64(copies)
}

// search finds the best split of one node: the one with the least sum over both sides of
// entropy times copies, in units of xlogx.
type search struct {
	xlogx       []int64
	evaluations uint64

	adaptive bool
	alpha    float64
	beta     float64
	stride   float64 // αN of Eq. 5

	n           uint32 // copies in the node
	nodeEntropy int64  // entropy of the node, times its copies
	best        int64  // the least sum so far
	found       bool
	split       split

	// Of the current column: a threshold is tried if at least next copies are on its
	// left; zeroLeft says that the implicit zeros are on its left.
	trying   segment
	next     uint32
	zeroLeft bool

	// observe, if set, is told of each threshold that the adaptive step tries: the one before
	// entry index of the column trying, with so many copies on its left. sum is entropy times
	// copies of both sides.
	observe func(index, left uint32, sum int64)

	weight, class []uint32 // of the sample's rows
	byPosition    bool     // as in grower
	binary        binaryCounts
	multiclass    multiclassCounts
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

// start prepares for a node of n copies. It reports false where all are of one
// class.
func (s *search) start(rows []uint32, n int) bool {
	s.n, s.found = uint32(n), false
	if s.multiclass.classes == 0 {
		s.nodeEntropy = s.startBinary(rows)
	} else {
		s.nodeEntropy = s.startMulticlass(rows)
	}
	s.best = s.nodeEntropy - minGain
	s.stride = float64(s.alpha * float64(n))
	return s.best > 0
}

// step returns how far the next threshold is, in copies, after one of sum
// (Eq. 5): s = αN / (1 + exp(β (g/g_max - 0.5))), at least 1, rounded down; g/g_max
// is 1 while no threshold had any gain.
func (s *search) step(sum int64) uint32 {
	if s.stride < 2 {
		return 1
	}
	ratio := 1.0
	if s.found {
		ratio = float64(s.nodeEntropy-sum) / float64(s.nodeEntropy-s.best)
	}
	far := s.stride / (1 + num.Exp(float64(s.beta*(ratio-0.5))))
	if far < 2 {
		return 1
	}
	return uint32(far)
}

// advance chooses the next threshold after the one before entry index, with left copies on its
// left, was tried.
func (s *search) advance(index, left uint32, sum int64) {
	s.next = left + s.step(sum)
	if s.observe != nil {
		s.observe(index, left, sum)
	}
}

// record records a better split of the current column: entries before index go left.
func (s *search) record(sum int64, index uint32) {
	s.best, s.found = sum, true
	s.split.total, s.split.index, s.split.zeroLeft = s.nodeEntropy-sum, index, s.zeroLeft
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

// Neighbours returns the entries on both sides of a threshold before entry index of a column,
// NoEntry for an implicit zero. The column's entries in the node, which has so many rows, are
// entries[from:to].
func Neighbours(entries []uint32, from, to, index uint32, zeroLeft bool, rows int) (lower, upper uint32) {
	lower, upper = index-1, index
	if int(to-from) == rows {
		return lower, upper
	}
	switch {
	case zeroLeft && (index == from || entries[index-1]&Positive == 0):
		lower = NoEntry
	case !zeroLeft && (index == to || entries[index]&Positive != 0):
		upper = NoEntry
	}
	return lower, upper
}

// CountNegative returns how many entries of a column, the first ones, are not positive. There
// is at least one entry.
func CountNegative(entries []uint32) int {
	if entries[0]&Positive != 0 {
		return 0
	}
	n, _ := slices.BinarySearchFunc(entries, Positive, func(e uint32, _ int) int { return int(e&Positive) - Positive })
	return n
}
