package forest

import (
	"math"
	"math/bits"
	"slices"
	"unsafe"

	"github.com/coppice-ldl/coppice/internal/num"
)

// divide divides a node by a split: its rows, and the columns of those children
// that may be split themselves.
func (g *grower) divide(p *pendingNode, s *split) (left, right pendingNode) {
	g.markSides(p, s)
	n, copies := g.divideRows(p)
	left = pendingNode{from: p.from, to: p.from + n, copies: copies, depth: p.depth + 1, path: 2 * p.path}
	right = pendingNode{from: left.to, to: p.to, copies: p.copies - copies, depth: p.depth + 1, path: 2*p.path + 1}
	left.splits, right.splits = g.classify(&left), g.classify(&right)
	g.divideColumns(p, &left, &right)
	return left, right
}

// markSides writes the side of each of the node's rows.
func (g *grower) markSides(p *pendingNode, s *split) {
	c := g.segments[s.segment]
	if g.byPosition {
		markRanks(g.ranks[:(p.to-p.from)/rankedRows+1], g.entries[c.from:c.to], int(s.index-c.from), s.zeroLeft)
		return
	}
	MarkSides(g.side, g.rows[p.from:p.to], g.entries[c.from:c.to], int(s.index-c.from), s.zeroLeft)
}

// MarkSides sets side, for each of a node's rows, to 0 where a split sends the row to the left
// and to 1 where it sends it to the right. entries are the node's entries of the split's column,
// and the first index of them go left; zeroLeft says where rows without an entry go.
func MarkSides(side []uint8, rows, entries []uint32, index int, zeroLeft bool) {
	if len(entries) < len(rows) {
		zero := uint8(1)
		if zeroLeft {
			zero = 0
		}
		for _, row := range rows {
			side[row] = zero
		}
	}
	for _, e := range entries[:index] {
		side[e&RowMask] = 0
	}
	for _, e := range entries[index:] {
		side[e&RowMask] = 1
	}
}

// divideRows moves the rows of the left child to the front, both sides in order,
// and returns their number and copies.
func (g *grower) divideRows(p *pendingNode) (n, copies int) {
	rows, r := g.rows[p.from:p.to], 0
	for i, row := range rows {
		if g.goesRight(i, row) {
			g.spare[r] = row
			r++
			continue
		}
		rows[n] = row
		n++
		copies += int(g.sample.Weight[row])
	}
	copy(rows[n:], g.spare[:r])
	return n, copies
}

// goesRight reports whether a row of the node goes to the right, given its position in the node.
func (s *sides) goesRight(position int, row uint32) bool {
	if s.byPosition {
		return s.ranks[position/rankedRows]>>(position%rankedRows)&1 != 0
	}
	return s.side[row] != 0
}

// divideColumns makes the lists of the children's columns on the stack: the right child's
// replaces the node's, the left child's comes on top.
func (g *grower) divideColumns(p, left, right *pendingNode) {
	right.base, right.top = p.base, p.base
	left.base, left.top = p.top, p.top
	if g.onDemand.enabled || !left.splits && !right.splits {
		return
	}
	g.segments = slices.Grow(g.segments[:p.top], p.top-p.base)[:2*p.top-p.base]
	nl, nr := left.to-left.from, right.to-right.from
	var goes [2]int // by side: 1 where a column of one entry there varies
	goes[0], goes[1] = oneIf(left.splits && nl > 1), oneIf(right.splits && nr > 1)
	for i := p.base; i < p.top; i++ {
		c := g.segments[i]
		entries := g.entries[c.from:c.to]
		if len(entries) == 1 && !g.byPosition { // which stays where it is; no branch knows its side
			side := int(g.side[entries[0]&RowMask] & 1)
			g.segments[right.top], g.segments[left.top] = c, c
			right.top += goes[1] & side
			left.top += goes[0] & (1 - side)
			continue
		}
		var n, r int
		switch {
		case g.byPosition:
			n = partitionRanked(entries, g.spare, g.ranks)
			r = len(entries) - n
		case left.splits && right.splits:
			n = Partition(entries, g.spare, g.side)
			r = len(entries) - n
		case left.splits:
			n = FilterSide(entries, g.side, 0)
		default:
			r = FilterSide(entries, g.side, 1)
		}
		if left.splits && Varies(entries[:n], nl) {
			g.segments[left.top] = segment{c.column, c.from, c.from + uint32(n)}
			left.top++
		}
		if right.splits && Varies(entries[n:n+r], nr) {
			g.segments[right.top] = segment{c.column, c.from + uint32(n), c.from + uint32(n+r)}
			right.top++
		}
	}
	g.segments = g.segments[:left.top]
}

// oneIf is 1 where something is true, else 0.
func oneIf(is bool) int {
	if is {
		return 1
	}
	return 0
}

// Partition moves the entries of rows of side 0 to the front, keeps the order on both
// sides, and returns the number of those in front. An entry gets the flag NewValue if it or
// an entry of the other side just before it has the flag. spare must be longer than
// entries by VectorSlack, and side longer than the number of rows by SideSlack.
func Partition(entries, spare []uint32, side []uint8) int {
	done, l, newLeft, newRight := startPartition(entries, spare, side)
	r := done - l
	for _, e := range entries[done:] {
		b := uint32(side[e&RowMask])
		isNew, rest := e&NewValue, e&^NewValue
		newLeft |= isNew
		newRight |= isNew
		entries[l] = rest | newLeft
		spare[r] = rest | newRight
		newLeft &= -b
		newRight &= b - 1
		l += int(1 - b)
		r += int(b)
	}
	if r < 8 { // too few for a call
		rest := entries[l:]
		for i := range r {
			rest[i] = spare[i]
		}
		return l
	}
	copy(entries[l:], spare[:r])
	return l
}

// rankedRows is how many rows a word of markRanks describes.
const rankedRows = 32

// markRanks sets ranks for the rows of a node, numbered by position. Word i describes rows 32i to 32i+31: its lower
// half has a bit for each, 1 if the split sends it to the right. Its upper half counts the rows before row 32i that go
// right. The table takes two bits a row. entries, index and zeroLeft are as for MarkSides.
func markRanks(ranks []uint64, entries []uint32, index int, zeroLeft bool) {
	zero := uint64(0)
	if !zeroLeft {
		zero = math.MaxUint32
	}
	for i := range ranks {
		ranks[i] = zero
	}
	for _, e := range entries[:index] {
		row := e & RowMask
		ranks[row/rankedRows] &^= 1 << (row % rankedRows)
	}
	for _, e := range entries[index:] {
		row := e & RowMask
		ranks[row/rankedRows] |= 1 << (row % rankedRows)
	}
	right := 0
	for i, sides := range ranks {
		ranks[i] |= uint64(right) << 32
		right += bits.OnesCount32(uint32(sides))
	}
}

// partitionRanked is Partition of entries that number rows by position in the node, given markRanks of its
// rows. The results number rows by position in the children.
func partitionRanked(entries, spare []uint32, ranks []uint64) int {
	done, l, newLeft, newRight := startPartitionRanked(entries, spare, ranks)
	r := done - l
	for _, e := range entries[done:] {
		row := e & RowMask
		word, at := ranks[row/rankedRows], row%rankedRows
		right := uint32(word>>32) + uint32(bits.OnesCount32(uint32(word)&(1<<at-1)))
		b := uint32(word) >> at & 1
		isNew, rest := e&NewValue, e&Positive
		newLeft |= isNew
		newRight |= isNew
		entries[l] = row - right | rest | newLeft
		spare[r] = right | rest | newRight
		newLeft &= -b
		newRight &= b - 1
		l += int(1 - b)
		r += int(b)
	}
	copy(entries[l:], spare[:r])
	return l
}

// FilterSide moves the entries of rows of one side to the front and returns their number.
func FilterSide(entries []uint32, side []uint8, want uint8) int {
	done, n, isNew := startFilterSide(entries, side, want)
	for _, e := range entries[done:] {
		b := uint32(side[e&RowMask] ^ want)
		isNew |= e & NewValue
		entries[n] = e&^NewValue | isNew
		isNew &= -b
		n += int(1 - b)
	}
	return n
}

// How many elements behind the end of a slice vector instructions may read or write.
const (
	VectorSlack = 8
	SideSlack   = 3
)

//go:noescape
func partitionAVX2(entries *uint32, n int, spare *uint32, side *uint8, order *[256]uint64) (left int, newLeft,
	newRight uint32)

//go:noescape
func partitionRankedAVX2(entries *uint32, n int, spare *uint32, ranks *uint64, order *[256]uint64) (left int, newLeft,
	newRight uint32)

//go:noescape
func filterSideAVX2(entries *uint32, n int, side *uint8, flip uint32, order *[256]uint64) (kept int, isNew uint32)

// startPartition does the first entries of Partition, as many as fill whole vectors.
func startPartition(entries, spare []uint32, side []uint8) (done, left int, newLeft, newRight uint32) {
	done = num.WholeVectors(len(entries))
	if num.Accelerated && done > 0 {
		left, newLeft, newRight = partitionAVX2(unsafe.SliceData(entries), done, unsafe.SliceData(spare),
			unsafe.SliceData(side), &num.FrontOrder)
	}
	return done, left, newLeft << 31, newRight << 31
}

// startPartitionRanked does the first entries of partitionRanked, as many as fill whole vectors.
func startPartitionRanked(entries, spare []uint32, ranks []uint64) (done, left int, newLeft, newRight uint32) {
	done = num.WholeVectors(len(entries))
	if num.Accelerated && done > 0 {
		left, newLeft, newRight = partitionRankedAVX2(unsafe.SliceData(entries), done, unsafe.SliceData(spare),
			unsafe.SliceData(ranks), &num.FrontOrder)
	}
	return done, left, newLeft << 31, newRight << 31
}

// startFilterSide does the first entries of FilterSide, as many as fill whole vectors.
func startFilterSide(entries []uint32, side []uint8, want uint8) (done, kept int, isNew uint32) {
	done = num.WholeVectors(len(entries))
	if num.Accelerated && done > 0 {
		kept, isNew = filterSideAVX2(unsafe.SliceData(entries), done, unsafe.SliceData(side), uint32(want-1)&0xff,
			&num.FrontOrder)
	}
	return done, kept, isNew << 31
}
