package boost

import "github.com/coppice-ldl/coppice/algorithms/kit/forest"

// bin is the sums of a node's rows of one value.
type bin struct {
	Pair
	rows int64
}

// node is a node of the tree at work: its rows are rows[from:to] and its sorted columns
// segments[base:top].
type node struct {
	from, to  int
	base, top int
	depth     int
	sum       Pair
	choice    Choice
	bins      []bin // nil: not kept
	varies    bool  // it may be split
	open      bool  // it has a split and was not split yet
	inner     bool  // it was split
	gain      float64
	threshold float64
	split     split
}

func (n *node) rows() int { return n.to - n.from }

// segment is the part of a sorted column that belongs to a node: entries[from:to].
type segment struct{ column, from, to uint32 }

// splittable reports whether a node of so many rows may be split by a column. entries are the node's entries of the
// column. It may not if its rows have one value, or if too few have another value than 0.
func splittable(entries []uint32, rows, leafRows int) bool {
	return (len(entries) == rows || len(entries) >= leafRows) && forest.Varies(entries, rows)
}

// place is where a column stands, and a threshold of it.
type place struct {
	column   uint32
	list     int    // in the list of binned columns, or of the node's segments
	binned   bool   // which list
	zeroLeft bool   // rows without an entry go left
	lower    uint32 // of a binned column: the bin before the threshold, or forest.NoEntry
	upper    uint32 // the bin after it
}

// split is a way to divide a node: the entries of a column before index go left, the others
// right; of a binned column, the bins.
type split struct {
	place
	index uint32
}

// search finds the best split of one node: the one of the greatest gain. Among ties the lowest
// column is taken, and of a column the lowest threshold.
type search struct {
	l2          float64 // in units, at least one of them
	least       int     // rows of a leaf
	pairs       []Pair  // by row
	evaluations uint64

	rows  int
	total Pair    // of the node
	best  float64 // the greatest sum of both sides' scores so far
	found bool
	split split
	at    place // of the threshold that is tried
}

// noise is the share of a node's score that is taken for rounding: a split must gain more.
const noise = 0x1p-44

// score returns a node's score, in units.
func (s *search) score(p Pair) float64 {
	g := float64(p.G)
	return float64(g*g) / (float64(p.H) + s.l2)
}

// start prepares for a node and returns its score.
func (s *search) start(rows int, total Pair) float64 {
	s.rows, s.total, s.found = rows, total, false
	score := s.score(total)
	s.best = score + float64(score*noise)
	return score
}

// try tries the threshold before entry or bin index, with these sums and rows on its left.
func (s *search) try(left Pair, rows int, index uint32) {
	if rows < s.least || s.rows-rows < s.least {
		return
	}
	s.evaluations++
	sum := s.score(left) + s.score(s.total.less(left))
	if sum > s.best || sum == s.best && s.found && s.at.column < s.split.column {
		s.best, s.found = sum, true
		s.split = split{s.at, index}
	}
}

// scan tries the threshold before each new value of entries. The first of them has number index,
// and left and rows are the sums and the rows before it. It returns the sums before the end.
func (s *search) scan(entries []uint32, index uint32, left Pair, rows int) Pair {
	from := min(max(0, s.least-rows), len(entries))
	to := max(from, min(s.rows-s.least-rows+1, len(entries)))
	left = s.sum(entries[:from], left)
	left = s.scanMiddle(entries[from:to], index+uint32(from), left, rows+from)
	return s.sum(entries[to:], left)
}

// sum adds the pairs of entries to left.
func (s *search) sum(entries []uint32, left Pair) Pair {
	for _, e := range entries {
		left = left.add(s.pairs[e&forest.RowMask])
	}
	return left
}

// margin is the share of the greatest sum of scores below which a sum that is computed without a
// division surely is not the greatest: far more than its rounding.
const margin = 0x1p-40

// scanMiddle is scan where both sides have rows enough before each of entries. Most thresholds are
// far from the best one: with x²/a + y²/b < best, x²b + y²a < best·a·b, which needs no division.
func (s *search) scanMiddle(entries []uint32, index uint32, left Pair, rows int) Pair {
	pairs, l2 := s.pairs, s.l2
	g, h := float64(s.total.G), float64(s.total.H)
	least := float64(s.best * (1 - margin))
	tried := uint64(0)
	for i, e := range entries {
		if e&forest.NewValue != 0 {
			x, a := float64(left.G), float64(left.H)
			y, b := g-x, h-a+l2
			a += l2
			sum := float64(float64(float64(x*x)*b) + float64(float64(y*y)*a))
			if sum < float64(least*float64(a*b)) {
				tried++
			} else {
				s.try(left, rows+i, index+uint32(i))
				least = float64(s.best * (1 - margin))
			}
		}
		left = left.add(pairs[e&forest.RowMask])
	}
	s.evaluations += tried
	return left
}

// sortedColumn tries the thresholds of a sorted column in ascending order. entries are the node's and
// the first one has the index from; rows without an entry have the value 0.
func (s *search) sortedColumn(entries []uint32, from uint32) {
	zeros := s.rows - len(entries)
	if zeros == 0 {
		s.scan(entries, from, Pair{}, 0)
		return
	}
	sum := s.sum(entries, Pair{})
	n := forest.CountNegative(entries)
	middle := from + uint32(n)
	passed := s.scan(entries[:n], from, Pair{}, 0)
	s.try(passed, n, middle)
	s.at.zeroLeft = true
	passed = passed.add(s.total.less(sum))
	if n == len(entries) {
		return
	}
	s.try(passed, n+zeros, middle)
	s.scan(entries[n+1:], middle+1, passed.add(s.pairs[entries[n]&forest.RowMask]), n+zeros+1)
}
