package forest

import (
	"math"
	"slices"
)

// An entry is a row number with two flags. A column lists its entries in the order of their
// values. Rows are numbered within the training rows (in a table) or within a sample.
const (
	// NewValue marks an entry whose value is above the one before it.
	NewValue = 1 << 31
	// Positive marks an entry whose value is above 0.
	Positive = 1 << 30
	// RowMask has the bits of an entry's row.
	RowMask = Positive - 1
)

// maxEntries bounds the entries of all columns.
const maxEntries = math.MaxUint32 - 1

// columns are the features of some rows, each sorted by value and then by row:
// column c is entries[start[c]:start[c+1]]. A sparse column has no entries for zeros; a
// dense column has an entry for each row.
type columns struct {
	start   []int
	entries []uint32
}

func (c *columns) column(i int) []uint32 { return c.entries[c.start[i]:c.start[i+1]] }

// sorter is the working memory of columns.sort.
type sorter struct {
	budget      int // keys of sparse columns to sort at a time, unless one column has more
	keys, spare []uint64
	next        []int
	block       []float32 // values of up to tile rows and columns
}

const (
	// leastSortBudget is the least budget of a sorter that has none.
	leastSortBudget = 1 << 19
	// sortPasses bounds the passes over the rows for the sparse columns, if a sorter has no budget.
	sortPasses = 8
	// tile is how many rows and columns are transposed at a time.
	tile = 64
)

// sort makes the columns of some training rows, which entries number by their
// index in rows.
func (c *columns) sort(t *Table, rows []uint32, z *sorter) {
	c.layOut(t, rows)
	c.transpose(t, rows, z)
	for i, sparse := range t.sparse {
		if sparse {
			continue
		}
		column := c.column(i)
		keys := Resized(&z.keys, len(column))
		for j, bits := range column {
			keys[j] = uint64(bits)<<32 | uint64(j)
		}
		z.sort(column, keys)
	}
	budget := z.budget
	if budget == 0 {
		budget = max(leastSortBudget, len(c.entries)/sortPasses)
	}
	for from := 0; from < t.features; {
		to, n := from, 0 // columns of n keys of sparse columns
		for ; to < t.features; to++ {
			if t.sparse[to] {
				if more := n + len(c.column(to)); n > 0 && more > budget {
					break
				} else {
					n = more
				}
			}
		}
		if n > 0 {
			c.sortSparse(t, rows, z, from, to, n)
		}
		from = to
	}
}

// layOut computes where each column begins.
func (c *columns) layOut(t *Table, rows []uint32) {
	clear(Resized(&c.start, t.features+1))
	if slices.Contains(t.sparse, true) {
		for _, row := range rows {
			t.eachNonZero(row, 0, t.features, func(i int, _ float32) { c.start[i+1]++ })
		}
	}
	for i, sparse := range t.sparse {
		if !sparse {
			c.start[i+1] = len(rows)
		}
		c.start[i+1] += c.start[i]
	}
	Resized(&c.entries, c.start[t.features])
}

// transpose writes the ordered bits of all values of the dense columns in the place of their
// entries, rows ascending. The rows of a shard are in random order: each is read once, and copied first, so that
// the processor waits for many rows at the same time.
func (c *columns) transpose(t *Table, rows []uint32, z *sorter) {
	Resized(&z.block, tile*tile)
	for first := 0; first < len(rows); first += tile {
		some := rows[first:min(first+tile, len(rows))]
		if t.shards[0].Sparse {
			c.transposeSparse(t, some, first)
			continue
		}
		for from := 0; from < t.features; from += tile {
			to := min(from+tile, t.features)
			for j, row := range some {
				shard, pos := t.At(row)
				copy(z.block[j*tile:(j+1)*tile], shard.Dense(pos)[from:to])
			}
			for i := from; i < to; i++ {
				if t.sparse[i] {
					continue
				}
				bits := c.column(i)[first : first+len(some)]
				for j := range bits {
					bits[j] = orderedBits(z.block[j*tile+i-from])
				}
			}
		}
	}
}

// transposeSparse is transpose for some rows of sparse shards, which begin with rows[first].
func (c *columns) transposeSparse(t *Table, some []uint32, first int) {
	for i, sparse := range t.sparse {
		if !sparse {
			for j := range some {
				c.entries[c.start[i]+first+j] = zeroBits
			}
		}
	}
	for j, row := range some {
		shard, pos := t.At(row)
		indices, values := shard.NonZeros(pos)
		for k, i := range indices {
			if !t.sparse[i] {
				c.entries[c.start[i]+first+j] = orderedBits(values[k])
			}
		}
	}
}

// sortSparse makes the sparse ones of columns [from, to), which have n entries.
func (c *columns) sortSparse(t *Table, rows []uint32, z *sorter, from, to, n int) {
	keys := Resized(&z.keys, n)
	Resized(&z.next, t.features)
	n = 0
	for i := from; i < to; i++ {
		if z.next[i] = n; t.sparse[i] {
			n += len(c.column(i))
		}
	}
	for j, row := range rows {
		t.eachNonZero(row, from, to, func(i int, x float32) {
			if t.sparse[i] {
				keys[z.next[i]] = makeKey(x, uint32(j))
				z.next[i]++
			}
		})
	}
	for i := from; i < to; i++ {
		if column := c.column(i); t.sparse[i] {
			z.sort(column, keys[z.next[i]-len(column):z.next[i]])
		}
	}
}

// sort writes the entries of a column, given its keys, rows ascending.
func (z *sorter) sort(column []uint32, keys []uint64) {
	sorted, _ := sortKeys(keys, Resized(&z.spare, len(keys)))
	writeEntries(column, sorted)
}

// writeEntries turns sorted keys into entries.
func writeEntries(dst []uint32, sorted []uint64) {
	last := uint32(0) // below the bits of any finite value
	for i, k := range sorted {
		e, bits := uint32(k), uint32(k>>32)
		if bits != last {
			e |= NewValue
		}
		if bits > zeroBits {
			e |= Positive
		}
		dst[i], last = e, bits
	}
}
