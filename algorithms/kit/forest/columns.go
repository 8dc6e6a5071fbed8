package forest

import (
	"math"
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
	budget      int // keys to sort at a time, unless one column has more
	keys, spare []uint64
	next        []int
}

// sortBudget is the budget of a sorter that has none.
const sortBudget = 1 << 19

// sort makes the columns of some training rows, which entries number by their
// index in rows.
func (c *columns) sort(t *Table, rows []uint32, z *sorter) {
	budget := z.budget
	if budget == 0 {
		budget = sortBudget
	}
	c.layOut(t, rows)
	resized(&z.next, t.features)
	for from, to := 0, 0; from < t.features; from = to {
		for to = from + 1; to < t.features && c.start[to+1]-c.start[from] <= budget; to++ {
		}
		resized(&z.keys, c.start[to]-c.start[from])
		c.gather(t, rows, z, from, to)
		for i := from; i < to; i++ {
			keys := z.keys[c.start[i]-c.start[from] : c.start[i+1]-c.start[from]]
			sorted, _ := sortKeys(keys, resized(&z.spare, len(keys)))
			writeEntries(c.column(i), sorted)
		}
	}
}

// layOut computes where each column begins.
func (c *columns) layOut(t *Table, rows []uint32) {
	clear(resized(&c.start, t.features+1))
	for _, row := range rows {
		t.eachNonZero(row, 0, t.features, func(i int, _ float32) { c.start[i+1]++ })
	}
	for i, sparse := range t.sparse {
		if !sparse {
			c.start[i+1] = len(rows)
		}
		c.start[i+1] += c.start[i]
	}
	c.resize(c.start[t.features])
}

// resize sets entries to n entries of any value. It frees the old ones before it allocates
// new ones, since they are most of a grower's memory. It allocates 2 % more than needed:
// the samples of other trees differ little in size.
func (c *columns) resize(n int) {
	if cap(c.entries) < n {
		c.entries = nil
		c.entries = make([]uint32, n+n/50)
	}
	c.entries = c.entries[:n]
}

// gather writes the keys of columns [from, to), column after column, rows
// ascending.
func (c *columns) gather(t *Table, rows []uint32, z *sorter, from, to int) {
	for i := from; i < to; i++ {
		z.next[i] = c.start[i] - c.start[from]
		if !t.sparse[i] {
			for j := range rows {
				z.keys[z.next[i]+j] = makeKey(0, uint32(j))
			}
		}
	}
	for j, row := range rows {
		t.eachNonZero(row, from, to, func(i int, x float32) {
			if !t.sparse[i] {
				z.keys[z.next[i]+j] = makeKey(x, uint32(j))
				return
			}
			z.keys[z.next[i]] = makeKey(x, uint32(j))
			z.next[i]++
		})
	}
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
