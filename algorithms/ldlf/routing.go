package ldlf

import (
	"slices"
	"sync"
	"sync/atomic"
)

// leafBlock is a block of a window's rows as Eq. 12 takes them: a column for each row,
// and more of weight 0 up to whole vectors.
type leafBlock struct {
	n       int       // rows
	columns int       // n, or a few more
	weight  []float32 // columns: how often each was drawn
	d       []float32 // labels×columns
}

// columnsOf returns the columns of a block of n rows, where the widest has width.
func columnsOf(n, width int) int {
	lanes := min(width, 32)
	return (n + lanes - 1) / lanes * lanes
}

// routing holds what stays the same while Eq. 12 is iterated: of the window's distinct
// rows, block after block, the weights, the labels and the routing probabilities under
// Θ. A block that begins at column i begins at i times its rows everywhere.
type routing struct {
	rows   int
	drawn  float64   // the sum of weights
	width  int       // columns of a block, of the last one or fewer
	weight []float32 // columns
	d      []float32 // labels×columns, of each block
	p      []float32 // trees×leaves×columns, of each block

	holders atomic.Int32
	spare   *spare // where it goes when nobody holds it
}

// shape makes room for a number of rows.
func (r *routing) shape(z *sizes, rows, width int) {
	columns := allColumns(rows, width)
	r.rows, r.width = rows, width
	r.weight = slices.Grow(r.weight[:0], columns)[:columns]
	r.d = slices.Grow(r.d[:0], z.labels*columns)[:z.labels*columns]
	n := z.trees * z.leaves * columns
	r.p = slices.Grow(r.p[:0], n)[:n]
}

// Bytes implements round.Derived.
func (r *routing) Bytes() int { return 4 * (cap(r.weight) + cap(r.d) + cap(r.p)) }

// Retain implements round.Derived.
func (r *routing) Retain() { r.holders.Add(1) }

// Release implements round.Derived.
func (r *routing) Release() {
	if r.holders.Add(-1) == 0 {
		r.spare.put(r)
	}
}

// block returns the block that begins with column from.
func (r *routing) block(from int, z *sizes) leafBlock {
	n := min(r.width, r.rows-from)
	columns := columnsOf(n, r.width)
	return leafBlock{n: n, columns: columns, weight: r.weight[from : from+columns],
		d: r.d[from*z.labels : (from+columns)*z.labels]}
}

// leaves returns a tree's routing probabilities, leaves×columns, in the block that
// begins with column from.
func (r *routing) leaves(from, columns, tree int, z *sizes) []float32 {
	return chunk(r.p[from*z.trees*z.leaves:], tree, z.leaves*columns)
}

// after returns what is read after a tree's routing in the block that begins with column
// from: the tree's in the next block, or the next tree's in the first one.
func (r *routing) after(from, tree int, z *sizes) []float32 {
	if from += r.width; from >= r.rows {
		from, tree = 0, tree+1
	}
	if tree == z.trees {
		return nil
	}
	return r.leaves(from, r.block(from, z).columns, tree, z)
}

// allColumns returns the columns of all blocks of a number of rows.
func allColumns(rows, width int) int { return rows/width*width + columnsOf(rows%width, width) }

// routingBytes returns the memory of a routing of so many rows.
func routingBytes(z *sizes, rows, width int) int {
	return 4 * allColumns(rows, width) * (1 + z.labels + z.trees*z.leaves)
}

// spareLimit bounds the memory of a job that waits for its next leaf update; it is no
// part of what a process may keep.
const spareLimit = 16 << 20

// spare has routings that nobody holds: the next leaf update's take their memory.
type spare struct {
	mu    sync.Mutex
	ready []*routing
	bytes int
}

// put takes a routing, or leaves it to the garbage collector where there are enough.
func (s *spare) put(r *routing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := r.Bytes(); s.bytes+n <= spareLimit {
		s.bytes += n
		s.ready = append(s.ready, r)
	}
}

// get returns a routing with one holder.
func (s *spare) get() *routing {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &routing{spare: s}
	if n := len(s.ready); n > 0 {
		r, s.ready[n-1] = s.ready[n-1], nil
		s.ready = s.ready[:n-1]
		s.bytes -= r.Bytes()
	}
	r.holders.Store(1)
	return r
}
