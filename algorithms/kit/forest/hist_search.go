package forest

import "github.com/coppice-ldl/coppice/algorithms/kit/binning"

// countedSplit is the best split of a node: rows up to the bin lower of a column go left, and those from the bin upper
// on go right. No row of the node has a bin between.
type countedSplit struct {
	column       int
	lower, upper int
	total        int64    // see split.total
	left         []uint32 // copies by class on the left
}

// countedSearch finds splits of nodes by their counts: the same as search finds by entries, if each value has a bin.
type countedSearch struct {
	search
	known       []int64 // xlogx of small numbers
	left, right []uint32
	sum         int64 // Σ xlogx over both
	best        countedSplit
}

// knownNumbers bounds the table of countedSearch.
const knownNumbers = 1 << 20

func newCountedSearch(c *Config, classes int) *countedSearch {
	return &countedSearch{
		search: search{adaptive: c.Step == stepAdaptive, alpha: c.Alpha, beta: c.Beta},
		left:   make([]uint32, classes), right: make([]uint32, classes),
	}
}

// knows prepares for nodes of up to so many copies.
func (s *countedSearch) knows(copies int) {
	if n := min(copies, knownNumbers); n >= len(s.known) {
		s.known = xlogx(n)
	}
}

func (s *countedSearch) term(n uint32) int64 {
	if int(n) < len(s.known) {
		return s.known[n]
	}
	return xlogxOf(n)
}

// find finds the best split of a node of these counts, whose bins of sparse columns are complete. It reports false if
// none has a gain. The split is valid until the next call.
func (s *countedSearch) find(counts []float64, l *layout, e *edges) (*countedSplit, bool) {
	classes, copies := len(s.left), uint32(0)
	whole := int64(0)
	for _, n := range counts[:classes] {
		copies += uint32(n)
		whole += s.term(uint32(n))
	}
	s.n, s.found = copies, false
	s.nodeEntropy = s.term(copies) - whole
	s.search.best = s.nodeEntropy - minGain
	s.stride = float64(s.alpha * float64(copies))
	if s.search.best <= 0 {
		return nil, false
	}
	for i, column := range l.columns {
		s.sum = whole
		s.tryBins(counts, l.first[i], column, &e.Columns[column])
	}
	return &s.best, s.found
}

// tryBins tries the thresholds of a column, whose first bin has place first. s.sum is Σ xlogx over the node.
func (s *countedSearch) tryBins(counts []float64, first, column int, c *binning.Column) {
	classes := len(s.left)
	clear(s.left)
	for k, n := range counts[:classes] {
		s.right[k] = uint32(n)
	}
	s.next = 1
	passed, lower := uint32(0), -1
	for bin := range c.Bins() {
		own := counts[(first+bin)*classes:][:classes]
		copies := 0.0
		for _, n := range own {
			copies += n
		}
		if copies == 0 {
			continue
		}
		if lower >= 0 {
			s.try(passed, column, lower, bin)
		}
		if passed += uint32(copies); passed == s.n {
			return // nothing is to the right
		}
		lower = bin
		s.pass(own)
	}
}

// pass moves the copies of a bin to the left.
func (s *countedSearch) pass(own []float64) {
	for k, n := range own {
		if n == 0 {
			continue
		}
		w, l, r := uint32(n), s.left[k], s.right[k]
		s.sum += s.term(l+w) - s.term(l) + s.term(r-w) - s.term(r)
		s.left[k], s.right[k] = l+w, r-w
	}
}

// try tries the threshold between two bins, with so many copies below it.
func (s *countedSearch) try(passed uint32, column, lower, upper int) {
	if passed < s.next {
		return
	}
	s.evaluations++
	sum := s.term(passed) + s.term(s.n-passed) - s.sum
	if sum < s.search.best {
		s.search.best, s.found = sum, true
		s.best.column, s.best.lower, s.best.upper, s.best.total = column, lower, upper, s.nodeEntropy-sum
		s.best.left = append(s.best.left[:0], s.left...)
	}
	if s.adaptive {
		s.next = passed + s.step(sum)
	}
}
