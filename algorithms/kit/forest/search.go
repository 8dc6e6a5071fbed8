package forest

import (
	"github.com/coppice-ldl/coppice/internal/num"
)

// segment is the part of a sorted column that belongs to a node: entries[from:to].
type segment struct{ column, from, to uint32 }

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

// binaryCounts counts copies by class, for two classes: class 0 in the low half of a
// word, class 1 in the high half.
type binaryCounts struct {
	packed []uint64 // by row, as entries number it: its weight, in the half of its class
	narrow []uint8  // packed, in bytes; empty if the sample has few rows or a row too many copies
	both   uint64   // of the node
	tables entropyTables
}

// multiclassCounts counts copies by class, for more than two classes.
type multiclassCounts struct {
	classes          int
	all, left, right []uint32                         // by class: in the node, on both sides of the threshold
	allSum, sum      int64                            // Σ xlogx over all, over left and right
	passed           uint32                           // copies on the left
	weight, class    []uint32                         // of the rows, as entries number them
	ordered          struct{ weight, class []uint32 } // the node's, if entries number rows by position
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

// startBinary counts the node's classes and returns its entropy times copies.
func (s *search) startBinary(rows []uint32) int64 {
	both, narrow := uint64(0), s.binary.narrow
	for i, row := range rows {
		number := row
		if s.byPosition {
			number = uint32(i)
		}
		w := uint64(s.weight[row]) << (32 * s.class[row])
		s.binary.packed[number] = w
		if len(narrow) > 0 {
			narrow[number] = uint8(s.weight[row] | s.class[row]<<classBit)
		}
		both += w
	}
	s.binary.both = both
	s.binary.tables.reset()
	return s.binaryEntropy(both)
}

// startMulticlass counts the node's classes and returns its entropy times copies.
func (s *search) startMulticlass(rows []uint32) int64 {
	m := &s.multiclass
	clear(m.all)
	for _, row := range rows {
		m.all[s.class[row]] += s.weight[row]
	}
	m.allSum = 0
	for _, n := range m.all {
		m.allSum += s.xlogx[n]
	}
	m.weight, m.class = s.weight, s.class
	if s.byPosition {
		m.weight, m.class = Resized(&m.ordered.weight, len(rows)), Resized(&m.ordered.class, len(rows))
		for i, row := range rows {
			m.weight[i], m.class[i] = s.weight[row], s.class[row]
		}
	}
	return s.xlogx[s.n] - m.allSum
}

// binaryEntropy returns the entropy of a count of both classes, times its copies.
func (s *search) binaryEntropy(counts uint64) int64 {
	a, b := uint32(counts), uint32(counts>>32)
	return s.xlogx[a+b] - (s.xlogx[a] + s.xlogx[b])
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
