package forest

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
	known []int64        // xlogx of small numbers
	node  []countedClass // of the node at work, with all copies on the right; of a small node, only classes that it has
	sides []countedClass // of the threshold at work
	whole int64          // Σ sum over node
	sum   int64          // Σ sum over sides
	best  countedSplit
}

// countedClass is how many copies of a class are on both sides of a threshold. sum is their Σ xlogx.
type countedClass struct {
	left, right uint32
	sum         int64
}

// knownNumbers bounds the table of countedSearch, and the copies of small nodes.
const knownNumbers = 1 << 20

func newCountedSearch(c *Config) *countedSearch {
	return &countedSearch{search: search{adaptive: c.Step == stepAdaptive, alpha: c.Alpha, beta: c.Beta}}
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

// begin begins a node with so many copies by class. It reports false if no split has a gain.
func (s *countedSearch) begin(node []uint32) bool {
	s.n, s.whole, s.found, s.node = 0, 0, false, s.node[:0]
	for _, n := range node {
		c := countedClass{right: n, sum: s.term(n)}
		s.node, s.n, s.whole = append(s.node, c), s.n+n, s.whole+c.sum
	}
	s.nodeEntropy = s.term(s.n) - s.whole
	s.search.best = s.nodeEntropy - minGain
	s.stride = float64(s.alpha * float64(s.n))
	return s.search.best > 0
}

// beginColumn begins a column of the node: all copies are on the right.
func (s *countedSearch) beginColumn() {
	s.sides = append(s.sides[:0], s.node...)
	s.sum, s.next = s.whole, 1
}

// find finds the best split of a node with so many copies by class. counts are its counts, whose bins of sparse columns
// are complete. It reports false if none has a gain. The split is valid until the next call.
func (s *countedSearch) find(node []uint32, counts []float64, l *layout, e *edges) (*countedSplit, bool) {
	if !s.begin(node) {
		return nil, false
	}
	for i, column := range l.columns {
		tryBins(s, counts[l.first[i]*len(node):], column, e.Columns[column].Bins())
	}
	return &s.best, s.found
}

// tryBins tries the thresholds of a column of so many bins, given the copies of each bin by class.
func tryBins[N float64 | uint32](s *countedSearch, counts []N, column, bins int) {
	s.beginColumn()
	classes := len(s.node)
	passed, lower := uint32(0), -1
	for bin := range bins {
		own := counts[bin*classes:][:classes]
		copies := N(0)
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
		for k, n := range own {
			if n != 0 {
				s.pass(k, uint32(n))
			}
		}
	}
}

// pass moves copies of a class to the left.
func (s *countedSearch) pass(class int, copies uint32) {
	c := &s.sides[class]
	c.left, c.right = c.left+copies, c.right-copies
	sum := s.term(c.left) + s.term(c.right)
	s.sum, c.sum = s.sum+sum-c.sum, sum
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
		s.best.left = s.best.left[:0]
		for i := range s.sides {
			s.best.left = append(s.best.left, s.sides[i].left)
		}
	}
	if s.adaptive {
		s.next = passed + s.step(sum)
	}
}
