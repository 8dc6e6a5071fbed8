package forest

import (
	"fmt"
	"slices"

	"github.com/coppice-ldl/coppice/dataset"
)

// An entry is a row of a column in the order of its values, with two flags. Rows
// are numbered within the training rows (in a table) or within a sample.
const (
	// newValue marks an entry whose value is above the one before it.
	newValue = 1 << 31
	// positive marks an entry whose value is above 0.
	positive = 1 << 30
	rowMask  = positive - 1
)

// maxRows bounds the training rows: an entry has 30 bits for a row.
const maxRows = 1 << 30

// table is a job's training rows with every feature sorted: made once, and shared
// by all trees and lanes, which only read it.
type table struct {
	features, labels int
	rows             []dataset.RowRef // training rows by original row number
	shards           []*dataset.Rows

	// Column c is entries[start[c]:start[c+1]], by value and then by row. A sparse
	// column leaves its zeros out; a full one has all rows.
	start   []int
	entries []uint32
	sparse  []bool

	meanNonZeros int // of a row, at least 1

	draws int     // size of a bootstrap sample
	xlogx []int64 // up to draws
}

// newTable sorts the training rows of d; refs lists them in any order.
func newTable(c *Config, d *dataset.Data, refs []dataset.RowRef) (*table, error) {
	if len(refs) > maxRows {
		return nil, fmt.Errorf("forest: %d training rows, more than the %d that are possible", len(refs), maxRows)
	}
	if err := c.checkDraws(len(refs)); err != nil {
		return nil, err
	}
	t := &table{features: d.Manifest.Features, labels: d.Manifest.Labels, draws: c.draws(len(refs))}
	for i := range d.Manifest.Shards {
		t.shards = append(t.shards, d.Shard(i))
	}
	t.rows = slices.Clone(refs)
	slices.SortFunc(t.rows, func(a, b dataset.RowRef) int {
		return int(t.shards[a.Shard].Row[a.Pos]) - int(t.shards[b.Shard].Row[b.Pos])
	})
	t.xlogx = xlogx(t.draws)
	t.layOut()
	t.sortColumns(sortBudget)
	return t, nil
}

// row returns the shard and position of a training row.
func (t *table) row(i uint32) (*dataset.Rows, int) {
	ref := t.rows[i]
	return t.shards[ref.Shard], int(ref.Pos)
}

// label returns the label distribution of a training row.
func (t *table) label(i uint32) []float32 {
	shard, pos := t.row(i)
	return shard.Label(pos)
}

// value returns one feature of a training row.
func (t *table) value(i uint32, column int) float32 {
	shard, pos := t.row(i)
	if !shard.Sparse {
		return shard.Dense(pos)[column]
	}
	columns, values := shard.NonZeros(pos)
	if at, ok := slices.BinarySearch(columns, uint32(column)); ok {
		return values[at]
	}
	return 0
}

// layOut decides which columns are sparse, those of at most two thirds non-zeros,
// and where each begins.
func (t *table) layOut() {
	counts := make([]int, t.features)
	for i := range t.rows {
		t.eachNonZero(uint32(i), 0, t.features, func(column int, _ float32) { counts[column]++ })
	}
	t.sparse = make([]bool, t.features)
	t.start = make([]int, t.features+1)
	for c, n := range counts {
		t.sparse[c] = 3*n <= 2*len(t.rows)
		if !t.sparse[c] {
			n = len(t.rows)
		}
		t.start[c+1] = t.start[c] + n
	}
	total := 0
	for _, n := range counts {
		total += n
	}
	t.meanNonZeros = 1 + total/len(t.rows)
	t.entries = make([]uint32, t.start[t.features])
}

// eachNonZero calls f for the non-zero features of a training row in [from, to).
func (t *table) eachNonZero(i uint32, from, to int, f func(column int, x float32)) {
	shard, pos := t.row(i)
	if !shard.Sparse {
		for j, x := range shard.Dense(pos)[from:to] {
			if x != 0 {
				f(from+j, x)
			}
		}
		return
	}
	columns, values := shard.NonZeros(pos)
	at, _ := slices.BinarySearch(columns, uint32(from))
	for ; at < len(columns) && int(columns[at]) < to; at++ {
		if values[at] != 0 {
			f(int(columns[at]), values[at])
		}
	}
}

// sortBudget is how many keys are sorted at a time, unless one column has more.
const sortBudget = 1 << 20

// sortColumns fills entries, as many columns at a time as budget keys hold.
func (t *table) sortColumns(budget int) {
	var keys, spare []uint64
	next := make([]int, t.features)
	for from, to := 0, 0; from < t.features; from = to {
		for to = from + 1; to < t.features && t.start[to+1]-t.start[from] <= budget; to++ {
		}
		size := t.start[to] - t.start[from]
		keys = slices.Grow(keys[:0], size)[:size]
		t.gather(keys, next, from, to)
		for c := from; c < to; c++ {
			column := keys[t.start[c]-t.start[from] : t.start[c+1]-t.start[from]]
			spare = slices.Grow(spare[:0], len(column))[:len(column)]
			sorted, _ := sortKeys(column, spare)
			writeEntries(t.entries[t.start[c]:t.start[c+1]], sorted)
		}
	}
}

// gather writes the keys of columns [from, to), column after column, rows
// ascending; next is scratch.
func (t *table) gather(keys []uint64, next []int, from, to int) {
	for c := from; c < to; c++ {
		next[c] = t.start[c] - t.start[from]
		if !t.sparse[c] {
			for i := range t.rows {
				keys[next[c]+i] = makeKey(0, uint32(i))
			}
		}
	}
	for i := range t.rows {
		t.eachNonZero(uint32(i), from, to, func(c int, x float32) {
			if !t.sparse[c] {
				keys[next[c]+i] = makeKey(x, uint32(i))
				return
			}
			keys[next[c]] = makeKey(x, uint32(i))
			next[c]++
		})
	}
}

// writeEntries turns sorted keys into entries.
func writeEntries(dst []uint32, sorted []uint64) {
	last := uint32(0) // below the bits of any finite value
	for i, k := range sorted {
		e, bits := uint32(k), uint32(k>>32)
		if bits != last {
			e |= newValue
		}
		if bits > zeroBits {
			e |= positive
		}
		dst[i], last = e, bits
	}
}

// bytes is the memory that the table holds beside the shards.
func (t *table) bytes() int {
	return 4*len(t.entries) + 8*(len(t.rows)+len(t.start)+len(t.xlogx))
}
