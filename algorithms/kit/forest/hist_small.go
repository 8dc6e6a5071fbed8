package forest

import (
	"math/bits"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms/kit/binning"
)

// smallNodes grows what is below small nodes, given their rows. It finds the splits that the counts of all bins give,
// but the work at a node is in proportion to its rows times its columns, however many bins there are, and to the number
// of classes.
type smallNodes struct {
	*growth
	dense  []int    // the dense columns, ascending
	column []uint32 // by bin of all columns: its column; empty if no column is sparse
	tried  []bool   // by column: a node tries it; all true if every feature is tried

	// Of the small node that was asked for, by row:
	tree   int
	read   countedRows
	copies []uint8
	codes  []uint8 // of dense columns: a column's together
	spare  []uint32

	node nodeRows
}

// nodeRows is what a search reads of the rows of the node at work, and its working memory.
type nodeRows struct {
	rows    []uint32
	present []int    // the classes of the node, ascending; others have no numbers
	number  []uint32 // by class: its index in present
	counts  []uint32 // copies by number
	draws   []draws  // of each row

	dense       []int               // the dense columns that the node tries
	keys, other []uint64            // the listed bins of columns that the node tries: the bin, then the index of the row
	head        [binning.Most]int32 // by bin: the index of the last of its rows; -1: it has none
	before      []int32             // of each row: the index of the one before in its bin; -1: there is none
	bins        []uint32            // copies by bin and number
	zero        []uint32            // copies in the zero bin by number
}

// draws is how often a tree has a row, in the low byte, and the number of the row's class.
type draws uint32

func (d draws) times() uint32    { return uint32(d & 0xff) }
func (d draws) classNumber() int { return int(d >> 8) }

func newSmallNodes(g *growth) *smallNodes {
	e := g.layouts.edges
	s := &smallNodes{growth: g, tried: make([]bool, len(e.Columns))}
	if e.Dense < len(e.Columns) {
		s.column = make([]uint32, e.All)
	}
	for i := range e.Columns {
		c := &e.Columns[i]
		s.tried[i] = g.layouts.sampler.everyFeature
		if !c.Sparse {
			s.dense = append(s.dense, i)
		}
		for bin := range c.Bins() {
			if c.Sparse {
				s.column[c.Base+bin] = uint32(i)
			}
		}
	}
	s.node.number = make([]uint32, g.classes)
	for bin := range s.node.head {
		s.node.head[bin] = -1
	}
	return s
}

// foldRows takes the rows of the nodes that next returned, as all tasks gave them.
func (g *growth) foldRows(parts [][]byte) error {
	asks, _ := g.next()
	s, rest := newSmallNodes(g), slices.Clone(parts)
	for i := range asks {
		if err := s.begin(&asks[i], rest); err != nil {
			return err
		}
		rows := make([]uint32, len(s.read.class))
		for row := range rows {
			rows[row] = uint32(row)
		}
		bytes, _ := g.costOf(&asks[i])
		g.waiting -= bytes
		s.grow(asks[i].node, rows)
	}
	for _, b := range rest {
		if len(b) > 0 {
			return errRows
		}
	}
	g.small = g.small[:len(g.small)-len(asks)]
	return nil
}

// begin reads the rows of a small node, which all parts begin with. They then begin with what follows.
func (s *smallNodes) begin(a *ask, parts [][]byte) (err error) {
	e, r := s.layouts.edges, &s.read
	s.tree, s.copies = a.tree, s.copies[:0]
	r.class, r.codes.Dense, r.codes.Start, r.codes.Listed = r.class[:0], r.codes.Dense[:0], r.codes.Start[:0],
		r.codes.Listed[:0]
	for i := range parts {
		if parts[i], err = r.readRows(&s.copies, parts[i], e, s.column, s.classes); err != nil {
			return err
		}
	}
	counts := make([]uint32, s.classes)
	for i, class := range r.class {
		counts[class] += uint32(s.copies[i])
	}
	if t := &s.trees[a.tree]; !slices.Equal(counts, t.countsOf(a.node, s.classes)) {
		return errRows
	}
	Resized(&s.spare, len(r.class))
	byColumn(Resized(&s.codes, len(r.codes.Dense)), r.codes.Dense, e.Dense)
	return r.checkCodes(s.codes, e)
}

// byColumn writes the codes of rows, a row's together, to dst, a column's together.
func byColumn(dst, codes []uint8, columns int) {
	const block = 64 // rows whose codes are in the cache
	if columns == 0 {
		return
	}
	rows := len(codes) / columns
	for from := 0; from < rows; from += block {
		some := min(block, rows-from)
		for c := range columns {
			to := dst[c*rows+from:][:some]
			for i := range to {
				to[i] = codes[(from+i)*columns+c]
			}
		}
	}
}

// codesOf returns the bins of a dense column, by row.
func (s *smallNodes) codesOf(c *binning.Column) []uint8 {
	rows := len(s.read.class)
	return s.codes[c.At*rows:][:rows]
}

// grow grows what is below a node, given its rows.
func (s *smallNodes) grow(node int, rows []uint32) {
	t := &s.trees[s.tree]
	if !s.splittable(t, node) || !s.find(t, node, rows) {
		return
	}
	best := s.search.best
	left := make([]uint32, s.classes)
	for number, class := range s.node.present {
		left[class] = best.left[number]
	}
	best.left = left
	t.splitNode(node, &best)
	middle := s.divide(rows, best.column, best.lower)
	child := t.nodes[node].left
	s.grow(child, rows[:middle])
	s.grow(child+1, rows[middle:])
}

// divide moves the rows up to a bin of a column to the front, both sides in order, and returns their number.
func (s *smallNodes) divide(rows []uint32, column, bin int) int {
	e := s.layouts.edges
	c := &e.Columns[column]
	if c.Sparse {
		return s.read.codes.Divide(rows, s.spare, c, bin, e.Dense)
	}
	codes, left, right := s.codesOf(c), 0, 0
	for _, row := range rows {
		rows[left], s.spare[right] = row, row // one of the two stays
		if int(codes[row]) <= bin {
			left++
		} else {
			right++
		}
	}
	copy(rows[left:], s.spare[:right])
	return left
}

// find finds the best split of a node. It reports false if none has a gain.
func (s *smallNodes) find(t *growingTree, node int, rows []uint32) bool {
	n, e := &s.node, s.layouts.edges
	s.gather(t.countsOf(node, s.classes), rows)
	if !s.search.begin(n.counts) {
		return false
	}
	dense := s.choose(s.layouts.layoutOf(t.number, t.nodes[node].path))
	for keys := n.keys; len(dense)+len(keys) > 0; {
		if len(keys) == 0 || len(dense) > 0 && dense[0] < int(s.column[keys[0]>>32]) {
			c := &e.Columns[dense[0]]
			if codes := s.codesOf(c); len(rows) >= c.Bins()*len(n.counts) {
				n.tryCounts(s.search, codes, dense[0], c.Bins())
			} else {
				n.tryRows(s.search, codes, dense[0])
			}
			dense = dense[1:]
			continue
		}
		column, own := int(s.column[keys[0]>>32]), 1
		for own < len(keys) && int(s.column[keys[own]>>32]) == column {
			own++
		}
		n.tryListed(s.search, keys[:own], column, &e.Columns[column])
		keys = keys[own:]
	}
	t.evaluations, s.search.evaluations = t.evaluations+s.search.evaluations, 0
	return s.search.found
}

// gather reads the classes and copies of the rows of a node.
func (s *smallNodes) gather(counts, rows []uint32) {
	n := &s.node
	n.rows, n.present, n.counts = rows, n.present[:0], n.counts[:0]
	for class, copies := range counts {
		if copies > 0 {
			n.number[class] = uint32(len(n.present))
			n.present, n.counts = append(n.present, class), append(n.counts, copies)
		}
	}
	Resized(&n.before, len(rows))
	all := Resized(&n.draws, len(rows))
	for i, row := range rows {
		all[i] = draws(n.number[s.read.class[row]]<<8 | uint32(s.copies[row])) // there are fewer classes than knownNumbers
	}
}

// choose returns the dense columns that the node tries, and lists the bins of the others.
func (s *smallNodes) choose(l *layout) (dense []int) {
	n, e := &s.node, s.layouts.edges
	dense = s.dense
	if every := s.layouts.sampler.everyFeature; !every {
		n.dense = n.dense[:0]
		for _, column := range l.columns {
			if s.tried[column] = true; !e.Columns[column].Sparse {
				n.dense = append(n.dense, column)
			}
		}
		dense = n.dense
		defer func() {
			for _, column := range l.columns {
				s.tried[column] = false
			}
		}()
	}
	n.keys = n.keys[:0]
	if len(s.read.codes.Listed) == 0 {
		return dense
	}
	for i, row := range n.rows {
		for _, bin := range s.read.codes.Listed[s.read.codes.Start[row]:s.read.codes.Start[row+1]] {
			if s.tried[s.column[bin]] {
				n.keys = append(n.keys, uint64(bin)<<32|uint64(i))
			}
		}
	}
	n.keys, n.other = sortKeys(n.keys, Resized(&n.other, len(n.keys)))
	return dense
}

// tryCounts tries the thresholds of a dense column, given the bins of all rows. It counts the copies of all bins.
func (n *nodeRows) tryCounts(s *countedSearch, codes []uint8, column, bins int) {
	classes := len(n.counts)
	counts := Resized(&n.bins, bins*classes)
	clear(counts)
	for i, row := range n.rows {
		counts[int(codes[row])*classes+n.draws[i].classNumber()] += n.draws[i].times()
	}
	tryBins(s, counts, column, bins)
}

// tryRows is tryCounts for few rows: it lists the rows of each bin.
func (n *nodeRows) tryRows(s *countedSearch, codes []uint8, column int) {
	var full [binning.Most / 64]uint64 // bins that have rows
	before := n.before[:len(n.rows)]
	for i, row := range n.rows {
		bin := codes[row]
		before[i], n.head[bin] = n.head[bin], int32(i)
		full[bin/64] |= 1 << (bin % 64)
	}
	s.beginColumn()
	table, sides := s.known, s.sides
	passed, lower := uint32(0), -1
	for word, set := range full {
		for ; set != 0; set &= set - 1 {
			bin := 64*word + bits.TrailingZeros64(set)
			if lower >= 0 {
				s.try(passed, column, lower, bin)
			}
			lower = bin
			at, total := n.head[bin], s.sum
			n.head[bin] = -1
			for ; at >= 0; at = before[at] {
				copies, c := n.draws[at].times(), &sides[n.draws[at].classNumber()]
				left, right := c.left+copies, c.right-copies
				sum := table[left] + table[right]
				total += sum - c.sum
				passed += copies
				*c = countedClass{left, right, sum}
			}
			s.sum = total
		}
	}
}

// tryListed tries the thresholds of a sparse column, given the listed bins of the node's rows, ascending. All other
// rows have the zero bin.
func (n *nodeRows) tryListed(s *countedSearch, keys []uint64, column int, c *binning.Column) {
	n.zero = append(n.zero[:0], n.counts...)
	zeros := s.n
	for _, key := range keys {
		d := n.draws[uint32(key)]
		n.zero[d.classNumber()] -= d.times()
		zeros -= d.times()
	}
	s.beginColumn()
	passed, lower := uint32(0), -1
	for len(keys) > 0 || zeros > 0 {
		bin := c.Zero
		listed := len(keys) > 0 && (zeros == 0 || int(keys[0]>>32)-c.Base < bin)
		if listed {
			bin = int(keys[0]>>32) - c.Base
		}
		if lower >= 0 {
			s.try(passed, column, lower, bin)
		}
		if lower = bin; !listed {
			for number, copies := range n.zero {
				if copies > 0 {
					s.pass(number, copies)
				}
			}
			passed, zeros = passed+zeros, 0
			continue
		}
		for ; len(keys) > 0 && int(keys[0]>>32)-c.Base == bin; keys = keys[1:] {
			d := n.draws[uint32(keys[0])]
			s.pass(d.classNumber(), d.times())
			passed += d.times()
		}
	}
}
