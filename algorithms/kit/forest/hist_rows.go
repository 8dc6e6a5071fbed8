package forest

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms/kit/binning"
	"github.com/coppice-ldl/coppice/internal/num"
)

// countedRows is what is kept of rows: their bins and classes.
type countedRows struct {
	codes binning.Codes
	class []uint32
}

// countedTree is a tree's sample of these rows, each node's rows together.
type countedTree struct {
	copies []uint8 // by row: how often the tree has it
	rows   []uint32
	nodes  map[uint64]rowSpan // by path
}

// rowSpan is the rows of a node.
type rowSpan struct{ from, to int }

// step is a split on the way to a node.
type step struct {
	column, bin int
	right       bool
}

// poisson draws how often a tree has a row: the draws of a row follow the Poisson distribution, whose mean is the
// sampling ratio. The count is a function of seed, tree and row, so no list of drawn rows travels.
type poisson struct {
	key   num.Key
	every bool      // each row is there once
	below []float64 // element k: the probability of at most k draws
}

func newPoisson(c *Config, key num.Key) *poisson {
	p := &poisson{key: key, every: !c.Bootstrap}
	term, sum := num.Exp(-c.SamplingRatio), 0.0
	for k := 1; term > 0x1p-53; k++ {
		sum += term
		p.below = append(p.below, sum)
		term = float64(term*c.SamplingRatio) / float64(k)
	}
	return p
}

// howOften returns how often a tree has a row, given the row's number in the dataset.
func (p *poisson) howOften(tree, row uint32) uint8 {
	if p.every {
		return 1
	}
	x := num.Philox(p.key, [4]uint32{row, tree, 0, 0})
	at := float64((uint64(x[0])|uint64(x[1])<<32)>>11) * 0x1p-53
	n := 0
	for n < len(p.below) && p.below[n] <= at {
		n++
	}
	return uint8(n)
}

// newCountedTree draws the sample of a tree, given the rows' numbers in the dataset.
func newCountedTree(p *poisson, tree uint32, numbers []uint32) *countedTree {
	t := &countedTree{copies: make([]uint8, len(numbers)), rows: make([]uint32, 0, len(numbers)),
		nodes: make(map[uint64]rowSpan)}
	for i, number := range numbers {
		if t.copies[i] = p.howOften(tree, number); t.copies[i] > 0 {
			t.rows = append(t.rows, uint32(i))
		}
	}
	t.nodes[1] = rowSpan{0, len(t.rows)}
	return t
}

// find returns the rows of a node, given the splits from the root to it. It divides the nodes on the way that are not
// divided yet.
func (t *countedTree) find(r *countedRows, steps []step, spare []uint32, b *binning.Bins) []uint32 {
	path := uint64(1)
	for _, s := range steps {
		if _, ok := t.nodes[2*path]; !ok {
			n := t.nodes[path]
			middle := n.from + r.codes.Divide(t.rows[n.from:n.to], spare, &b.Columns[s.column], s.bin, b.Dense)
			t.nodes[2*path], t.nodes[2*path+1] = rowSpan{n.from, middle}, rowSpan{middle, n.to}
		}
		if path *= 2; s.right {
			path++
		}
	}
	n := t.nodes[path]
	return t.rows[n.from:n.to]
}

// rowCounter counts the rows of nodes.
type rowCounter struct {
	layouts *layouts
	to      []int32 // by bin of a sparse column: its place; -1: the node does not try its column
	whole   bool    // true if to is for layouts.all
	at      [countedChunk]int
	weight  [countedChunk]float64
	spare   []uint32
}

// countedChunk is how many rows are added to the bins of one column before the next column: their counts fit into the
// processor's cache.
const countedChunk = 256

func newRowCounter(l *layouts) *rowCounter {
	return &rowCounter{layouts: l, to: make([]int32, l.edges.All)}
}

// prepare says where the bins of sparse columns are in a layout.
func (a *rowCounter) prepare(l *layout) {
	if a.whole {
		return
	}
	num.Fill(a.to, -1)
	for i, at := range l.columns {
		if c := &a.layouts.edges.Columns[at]; c.Sparse {
			for bin := range c.Bins() {
				a.to[c.Base+bin] = int32(l.first[i] + bin)
			}
		}
	}
	a.whole = l == &a.layouts.all
}

// add adds the copies of rows to the counts of a node, which is 0 at first. Sums of whole numbers are exact in any
// order.
func (a *rowCounter) add(dst []float64, rows []uint32, r *countedRows, copies []uint8, l *layout) {
	a.prepare(l)
	e, classes := a.layouts.edges, a.layouts.classes
	for len(rows) > 0 {
		chunk := rows[:min(countedChunk, len(rows))]
		rows = rows[len(chunk):]
		for i, row := range chunk {
			a.at[i], a.weight[i] = int(r.class[row]), float64(copies[row])
			dst[a.at[i]] += a.weight[i]
		}
		for i, column := range l.columns {
			c := &e.Columns[column]
			if c.Sparse {
				continue
			}
			block, codes := dst[l.first[i]*classes:(l.first[i]+c.Bins())*classes], r.codes.Dense[c.At:]
			for k, row := range chunk {
				block[int(codes[int(row)*e.Dense])*classes+a.at[k]] += a.weight[k]
			}
		}
		if len(r.codes.Listed) == 0 {
			continue
		}
		for k, row := range chunk {
			for _, bin := range r.codes.Listed[r.codes.Start[row]:r.codes.Start[row+1]] {
				if to := a.to[bin]; to >= 0 {
					dst[int(to)*classes+a.at[k]] += a.weight[k]
				}
			}
		}
	}
}

// spareFor returns room for rows of a division.
func (a *rowCounter) spareFor(rows int) []uint32 {
	if cap(a.spare) < rows {
		a.spare = make([]uint32, rows)
	}
	return a.spare[:rows]
}

// appendRows appends the encoded rows of a node: their number, then of each its class, its copies, the number of its
// listed bins, its dense bins, and the listed ones.
func (r *countedRows) appendRows(dst []byte, rows []uint32, copies []uint8, dense int) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(rows)))
	for _, row := range rows {
		dst = binary.LittleEndian.AppendUint32(dst, r.class[row])
		dst = append(dst, copies[row])
		list := r.codes.Listed[r.codes.Start[row]:r.codes.Start[row+1]]
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(list)))
		dst = append(dst, r.codes.Dense[int(row)*dense:][:dense]...)
		dst = append(dst, num.BytesU32(list)...)
	}
	return dst
}

// rowHead is how many bytes of an encoded row come before its bins.
const rowHead = 4 + 1 + 4

var errRows = fmt.Errorf("forest: the samples of a node: %w", binning.ErrBins)

// readRows adds the rows of a node, which b begins with, to rows of one tree. It returns what follows. columnOf has the
// column of each bin of a sparse column.
func (r *countedRows) readRows(copies *[]uint8, b []byte, e *edges, columnOf []uint32, classes int) (rest []byte,
	err error) {
	if len(b) < 4 {
		return nil, errRows
	}
	n := binary.LittleEndian.Uint32(b)
	b = b[4:]
	if len(r.codes.Start) == 0 {
		r.codes.Start = append(r.codes.Start, 0)
	}
	for range n {
		if len(b) < rowHead {
			return nil, errRows
		}
		class, listed := binary.LittleEndian.Uint32(b), uint64(binary.LittleEndian.Uint32(b[5:]))
		if size := uint64(rowHead+e.Dense) + 4*listed; class >= uint32(classes) || b[4] == 0 || uint64(len(b)) < size {
			return nil, fmt.Errorf("%w: class %d of %d", errRows, class, classes)
		}
		r.class, *copies = append(r.class, class), append(*copies, b[4])
		b = b[rowHead:]
		r.codes.Dense = append(r.codes.Dense, b[:e.Dense]...)
		b = b[e.Dense:]
		end := 0 // of the bins of the column before
		for i := range listed {
			bin := int(binary.LittleEndian.Uint32(b[4*i:]))
			if bin >= len(columnOf) || bin < end {
				return nil, fmt.Errorf("%w: bin %d of %d", errRows, bin, e.All)
			}
			c := &e.Columns[columnOf[bin]]
			end = c.Base + c.Bins()
			if !c.Sparse || bin < c.Base || bin >= end || bin == c.Base+c.Zero {
				return nil, fmt.Errorf("%w: bin %d is no bin that is listed", errRows, bin)
			}
			r.codes.Listed = append(r.codes.Listed, uint32(bin))
		}
		b = b[4*listed:]
		r.codes.Start = append(r.codes.Start, uint32(len(r.codes.Listed)))
	}
	return b, nil
}

// checkCodes refuses dense bins that columns do not have, given the bins of each column together.
func (r *countedRows) checkCodes(codes []uint8, e *edges) error {
	for i := range e.Columns {
		c := &e.Columns[i]
		if c.Sparse || len(r.class) == 0 {
			continue
		}
		if most := slices.Max(codes[c.At*len(r.class):][:len(r.class)]); int(most) >= c.Bins() {
			return fmt.Errorf("%w: feature %d has no bin %d", errRows, c.Feature, most)
		}
	}
	return nil
}
