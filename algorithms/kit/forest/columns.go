package forest

import (
	"slices"

	"github.com/coppice-ldl/coppice/dataset"
)

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

// NewTable makes the table of the training rows of d, with all columns sorted; refs lists the rows
// in any order. Rows are numbered from 0 in the order of the dataset.
func NewTable(d *dataset.Data, refs []dataset.RowRef) (*Table, error) {
	t, err := unsortedTable(d, refs)
	if err == nil {
		t.columns.sort(t, t.allRows(), new(sorter))
	}
	return t, err
}

// newTable makes the table of a forest, whose columns are sorted unless they are too many.
func newTable(c *Config, d *dataset.Data, refs []dataset.RowRef) (*Table, error) {
	if err := c.checkDraws(len(refs)); err != nil {
		return nil, err
	}
	t, err := unsortedTable(d, refs)
	if err != nil {
		return nil, err
	}
	t.draws = c.draws(len(refs))
	t.xlogx = xlogx(t.draws)
	if t.entries <= maxPresorted {
		t.columns.sort(t, t.allRows(), new(sorter))
	}
	return t, nil
}
