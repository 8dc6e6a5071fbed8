package boost

import "github.com/coppice-ldl/coppice/algorithms/forest"

// segment is the part of a sorted column that belongs to a node: entries[from:to].
type segment struct{ column, from, to uint32 }

// rootSegments lists the columns that the root may be split by.
func rootSegments(t *forest.Table, features, leafRows int) (list []segment) {
	at := 0
	for c := range features {
		entries := t.Column(c)
		if splittable(entries, len(t.Refs()), leafRows) {
			list = append(list, segment{uint32(c), uint32(at), uint32(at + len(entries))})
		}
		at += len(entries)
	}
	return list
}

// splittable reports whether a node of so many rows may be split by a column, of which it has entries: not
// where its rows have one value, or too few have another value than 0.
func splittable(entries []uint32, rows, leafRows int) bool {
	return (len(entries) == rows || len(entries) >= leafRows) && forest.Varies(entries, rows)
}

// split is a way to divide a node: the entries of a column before index go left, the others
// right.
type split struct {
	column   uint32
	segment  int    // where the column's segment stands
	index    uint32 // of the first entry on the right
	zeroLeft bool   // rows without an entry go left
}

// search finds the best split of one node: the one of the greatest gain, the first among ties.
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

	zeroLeft bool // of the current column: the implicit zeros are on the threshold's left
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

// try tries the threshold before entry index, with these sums and rows on its left.
func (s *search) try(left Pair, rows int, index uint32) {
	if rows < s.least || s.rows-rows < s.least {
		return
	}
	s.evaluations++
	if sum := s.score(left) + s.score(s.total.less(left)); sum > s.best {
		s.best, s.found = sum, true
		s.split.index, s.split.zeroLeft = index, s.zeroLeft
	}
}

// scan tries the threshold before each new value of entries, the first of which is entry index.
// left and rows are the sums and the rows before it. It returns those before the end.
func (s *search) scan(entries []uint32, index uint32, left Pair, rows int) Pair {
	for i, e := range entries {
		if e&forest.NewValue != 0 {
			s.try(left, rows+i, index+uint32(i))
		}
		left = left.add(s.pairs[e&forest.RowMask])
	}
	return left
}

// column tries the thresholds of a column in ascending order, and reports whether one is better
// than all before. entries are the node's and the first one has the index from; rows without an
// entry have the value 0.
func (s *search) column(entries []uint32, from uint32) bool {
	before := s.best
	s.zeroLeft = false
	zeros := s.rows - len(entries)
	if zeros == 0 {
		s.scan(entries, from, Pair{}, 0)
		return s.best > before
	}
	sum, flags := Pair{}, uint32(0)
	for _, e := range entries[1:] {
		sum = sum.add(s.pairs[e&forest.RowMask])
		flags |= e
	}
	first := s.pairs[entries[0]&forest.RowMask]
	rest := s.total.less(sum.add(first)) // of the zeros
	if entries[0]&forest.Positive == 0 {
		s.signed(entries, from, rest, zeros)
		return s.best > before
	}
	s.zeroLeft = true
	s.try(rest, zeros, from)
	if flags&forest.NewValue != 0 {
		s.scan(entries[1:], from+1, rest.add(first), zeros+1)
	}
	return s.best > before
}

// signed is column for a column with negative values and implicit zeros, whose sums and number are
// given.
func (s *search) signed(entries []uint32, from uint32, sum Pair, zeros int) {
	n := forest.CountNegative(entries)
	middle := from + uint32(n)
	passed := s.scan(entries[:n], from, Pair{}, 0)
	s.try(passed, n, middle)
	if n == len(entries) {
		return
	}
	s.zeroLeft = true
	passed = passed.add(sum)
	s.try(passed, n+zeros, middle)
	s.scan(entries[n+1:], middle+1, passed.add(s.pairs[entries[n]&forest.RowMask]), n+zeros+1)
}
