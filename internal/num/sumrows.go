package num

import (
	"math/bits"
	"slices"
	"unsafe"
)

// Rows are rows of equal width that have numbers, ascending. Where Later is set, it computes
// them.
type Rows struct {
	Values []float32
	Index  []uint32
	Later  interface{ Compute(dst []float32, from int) }
}

// MostRows is how many lists SumRows takes.
const MostRows = 16

// SumRows sets dst to the sum of lists of rows of width values, and index to the numbers of
// the rows that any of them has. The lists are the leaves of a pinned tree: of each two
// neighbours the left one plus the right one, then of each two sums, and so on; a node
// without a right child is its left child, and a row that a list lacks is +0. No value of
// theirs is -0. dst and index have room for all rows of the sum and share no memory with
// the lists. It returns the number of rows.
//
// What is computed later is computed a block of rows at a time, into work, which SumRows
// returns, perhaps enlarged.
func SumRows(dst []float32, index []uint32, lists []Rows, width int, work []float32) (n int, space []float32) {
	if width <= 0 || len(dst) != len(index)*width || len(lists) > MostRows {
		panic("num: rows of another width")
	}
	for i := range lists {
		if lists[i].Later == nil && len(lists[i].Values) != len(lists[i].Index)*width {
			panic("num: rows of another width")
		}
	}
	s := rowSum{work: work[:0]}
	for s.next(lists) {
		s.compute(lists, width)
		if bits.OnesCount64(s.there) > len(index)-n {
			panic("num: no room for a sum of rows")
		}
		rows := s.numbers(index[n:])
		to := dst[n*width : (n+rows)*width]
		s.sum(to, len(lists), width)
		n += rows
	}
	return n, s.work
}

// rowBlock is how many numbers a block has.
const rowBlock = 64

// rowSum is a sum of rows whose numbers are in a block.
type rowSum struct {
	first  uint32                     // the block's first number
	there  uint64                     // bit i: some list has number first + i
	has    [rowBlock]uint16           // of each number: bit i: list i has it
	place  [rowBlock][MostRows]uint32 // where it is in list i, if that has it
	before [MostRows]int              // how many of a list's rows are in the blocks before
	taken  [MostRows]int              // and in this one
	work   []float32                  // rows of this block that are computed
	values [MostRows][]float32
}

// next goes on to the next block in which there are rows.
func (s *rowSum) next(lists []Rows) bool {
	least, any := ^uint32(0), false
	for i := range lists {
		if index := lists[i].Index; s.taken[i] < len(index) {
			least, any = min(least, index[s.taken[i]]), true
		}
	}
	s.first, s.there = least&^(rowBlock-1), 0
	clear(s.has[:])
	for i := range lists {
		s.locate(i, &lists[i])
	}
	return any
}

// locate finds the rows of list i that are in the block.
func (s *rowSum) locate(i int, list *Rows) {
	at, index, base := s.taken[i], list.Index, 0
	if list.Later != nil {
		base = at
	}
	s.before[i] = at
	for ; at < len(index) && index[at]&^(rowBlock-1) == s.first; at++ {
		c := index[at] & (rowBlock - 1)
		s.there |= 1 << c
		s.has[c] |= 1 << i
		s.place[c][i] = uint32(at - base)
	}
	s.taken[i] = at
}

// compute computes the block's rows that are computed later: values has where each list's
// are.
func (s *rowSum) compute(lists []Rows, width int) {
	rows := 0
	for i := range lists {
		if lists[i].Later != nil {
			rows += s.taken[i] - s.before[i]
		}
	}
	s.work = slices.Grow(s.work[:0], rows*width)[:rows*width]
	rest := s.work
	for i := range lists {
		s.values[i] = lists[i].Values
		if lists[i].Later != nil {
			n := (s.taken[i] - s.before[i]) * width
			s.values[i], rest = rest[:n], rest[n:]
			if n > 0 {
				lists[i].Later.Compute(s.values[i], s.before[i])
			}
		}
	}
}

// numbers sets index to the block's numbers that are there, and returns how many.
func (s *rowSum) numbers(index []uint32) (n int) {
	for there := s.there; there != 0; there &= there - 1 {
		index[n] = s.first + uint32(bits.TrailingZeros64(there))
		n++
	}
	return n
}

// zeroRow is what is added for a row that is not there.
var zeroRow [1 << 10]float32

// sum sets dst to the sum of the block's rows. Vectors take rows of whole blocks of four.
func (s *rowSum) sum(dst []float32, lists, width int) {
	if !Accelerated || width%32 != 0 || width > len(zeroRow) {
		s.sumGo(dst, lists, width)
		return
	}
	var values [MostRows]*float32
	for i := range lists {
		values[i] = unsafe.SliceData(s.values[i])
	}
	groups := 1
	for 4*groups < lists {
		groups *= 2
	}
	switch {
	case s.there == 0:
	case wide && width%64 == 0:
		sumRowsAVX512(unsafe.SliceData(dst), s.there, &s.has[0], &s.place[0], &values, groups, width, &zeroRow[0])
	default:
		sumRowsAVX2(unsafe.SliceData(dst), s.there, &s.has[0], &s.place[0], &values, groups, width, &zeroRow[0])
	}
}

// sumGo sets dst to the sum of the block's rows, some columns at a time.
func (s *rowSum) sumGo(dst []float32, lists, width int) {
	var leaves [MostRows][64]float32
	for there := s.there; there != 0; there &= there - 1 {
		number, row := bits.TrailingZeros64(there), dst[:width]
		dst = dst[width:]
		for from := 0; from < width; from += 64 {
			n := min(64, width-from)
			for i := range lists {
				if s.has[number]>>i&1 == 0 {
					clear(leaves[i][:n])
				} else {
					copy(leaves[i][:n], s.values[i][int(s.place[number][i])*width+from:])
				}
			}
			addLeaves(leaves[:lists], n)
			copy(row[from:], leaves[0][:n])
		}
	}
}

// addLeaves sets the first n values of the first leaf to the sum of all along the tree.
func addLeaves(leaves [][64]float32, n int) {
	for step := 1; step < len(leaves); step *= 2 {
		for i := 0; i+step < len(leaves); i += 2 * step {
			Add32(leaves[i][:n], leaves[i+step][:n])
		}
	}
}

// MergeRows sets dst to the sum of two lists of rows of width values, each with ascending
// indices: a row that only one has is +0 in the other. dst and index have room for all rows
// of the sum, and share no memory with a and b. It returns the number of rows.
func MergeRows(dst []float32, index []uint32, a, b []float32, aIndex, bIndex []uint32, width int) int {
	if len(a) != len(aIndex)*width || len(b) != len(bIndex)*width || len(dst) != len(index)*width {
		panic("num: rows of another width")
	}
	i, j, n := 0, 0, 0
	if Accelerated && width > 0 && width%8 == 0 { // until the end of a list at the most
		run := mergeRowsAVX2
		if wide && width%64 == 0 {
			run = mergeRowsAVX512
		}
		i, j, n = run(unsafe.SliceData(dst), unsafe.SliceData(index), unsafe.SliceData(a), unsafe.SliceData(b),
			unsafe.SliceData(aIndex), unsafe.SliceData(bIndex), len(aIndex), len(bIndex), width, len(index))
	}
	for i < len(aIndex) && j < len(bIndex) {
		row := dst[n*width : (n+1)*width]
		x, y := aIndex[i], bIndex[j]
		index[n] = min(x, y)
		switch {
		case x < y:
			copy(row, a[i*width:])
			Canonical32(row)
			i++
		case y < x:
			copy(row, b[j*width:])
			Canonical32(row)
			j++
		default:
			copy(row, a[i*width:])
			Add32(row, b[j*width:(j+1)*width])
			i, j = i+1, j+1
		}
		n++
	}
	if len(aIndex)-i+len(bIndex)-j > len(index)-n {
		panic("num: no room for a sum of rows")
	}
	copy(dst[n*width:], a[i*width:])
	n += copy(index[n:], aIndex[i:])
	copy(dst[n*width:], b[j*width:])
	n += copy(index[n:], bIndex[j:])
	return n
}

// OuterTerm is one term of a row of a sum of outer products: A times row X of a matrix. Next
// is one more than the number of the term that is added after it; 0: it is the last one.
type OuterTerm struct {
	A       float32
	X, Next uint32
}

// Outers are rows of a sum of outer products. First has one more than the number of each
// row's first term; X has rows of Width values.
type Outers struct {
	First []uint32
	Terms []OuterTerm
	X     []float32
	Width int
}

// ListRows sets index to the numbers whose bits are set in touched, ascending, and first to
// their heads. It clears touched, and head of these, and returns how many there are.
func ListRows(index, first []uint32, touched []uint64, head []uint32) (n int) {
	for i, word := range touched {
		touched[i] = 0
		for ; word != 0; word &= word - 1 {
			row := uint32(i*64 + bits.TrailingZeros64(word))
			index[n], first[n] = row, head[row]
			head[row] = 0
			n++
		}
	}
	return n
}

// CountBits returns how many bits of words are set.
func CountBits(words []uint64) (n int) {
	for _, word := range words {
		n += bits.OnesCount64(word)
	}
	return n
}

// Compute sets dst to whole rows, from row from on: dst[i,j] is fma(A, X[X,j], ...)
// of its terms in order, begun at 0, with +0 in the place of -0.
func (o *Outers) Compute(dst []float32, from int) {
	if o.Width <= 0 || len(dst)%o.Width != 0 || len(o.X)%o.Width != 0 {
		panic("num: rows of another width")
	}
	first := o.First[from : from+len(dst)/o.Width]
	if len(first) == 0 {
		return
	}
	if !Accelerated {
		o.computeGo(dst, first)
		return
	}
	// Vectors take rows of whole blocks of eight at once, others at most 32 columns at a time.
	for at := 0; at < o.Width; {
		var done bool
		columns, of := o.Width-at, len(o.X)/o.Width
		to, x := unsafe.SliceData(dst[at:]), unsafe.SliceData(o.X[at:])
		if o.Width%64 == 0 {
			done = sumOutersAVX2(to, unsafe.SliceData(first), len(first), unsafe.SliceData(o.Terms), len(o.Terms), x,
				of, o.Width)
		} else {
			if columns >= 8 {
				columns = min(columns&^7, 32)
			}
			done = narrowOutersAVX2(to, unsafe.SliceData(first), len(first), unsafe.SliceData(o.Terms), len(o.Terms), x, of,
				o.Width, columns)
		}
		if !done {
			panicIndex()
		}
		at += columns
	}
}

func (o *Outers) computeGo(dst []float32, first []uint32) {
	for i, at := range first {
		sum := dst[i*o.Width : (i+1)*o.Width]
		clear(sum)
		for more := true; more; more = at > 0 {
			term := &o.Terms[at-1]
			from := int(term.X) * o.Width
			mulAddRow(sum, term.A, o.X[from:from+o.Width])
			at = term.Next
		}
		Canonical32(sum)
	}
}
