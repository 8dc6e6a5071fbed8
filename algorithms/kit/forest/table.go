package forest

import (
	"fmt"
	"slices"

	"github.com/coppice-ldl/coppice/dataset"
)

// maxRows bounds the training rows: an entry has 30 bits for a row.
const maxRows = 1 << 30

// maxPresorted bounds the entries (4 bytes each) that a table has sorted for all trees. With
// more of them each tree sorts its own sample, which takes about a tenth longer
// but needs no second copy of the features.
const maxPresorted = 1 << 20

// Table is a job's training rows. It is made once, and all growers read it concurrently.
type Table struct {
	features, labels int
	Rows

	columns columns // of all training rows; empty if more than maxPresorted
	sparse  []bool  // by column: its zeros are left out
	entries int     // of all columns
	nonZero int     // features of a row that are not 0, the mean rounded up

	rowValues []float64 // Variant.RowValue by training row, or nil

	draws int     // size of a bootstrap sample
	xlogx []int64 // up to draws
}

// unsortedTable makes a table without columns.
func unsortedTable(d *dataset.Data, refs []dataset.RowRef) (*Table, error) {
	if len(refs) > maxRows {
		return nil, fmt.Errorf("forest: %d training samples, at most %d are possible", len(refs), maxRows)
	}
	t := &Table{features: d.Manifest.Features, labels: d.Manifest.Labels, Rows: NewRows(d, refs)}
	t.entries = t.chooseStorage(refs)
	if t.entries > maxEntries {
		return nil, fmt.Errorf("forest: %d values to sort, at most %d are possible", t.entries, maxEntries)
	}
	return t, nil
}

// Entries returns the entries of all columns, one column after the other. They must not be changed.
func (t *Table) Entries() []uint32 { return t.columns.entries }

// Column returns the entries of a feature, sorted by value and then by row; rows without an entry
// have the value 0. They must not be changed.
func (t *Table) Column(feature int) []uint32 { return t.columns.column(feature) }

// computeRowValues computes Variant.RowValue of each training row.
func (t *Table) computeRowValues(f func(label []float32) float64) {
	if f == nil {
		return
	}
	t.rowValues = make([]float64, len(t.rows))
	const some = 64 // rows that are copied first: see columns.transpose
	labels := make([]float32, some*t.labels)
	for first := 0; first < len(t.rows); first += some {
		values := t.rowValues[first:min(first+some, len(t.rows))]
		for i := range values {
			copy(labels[i*t.labels:(i+1)*t.labels], t.Label(uint32(first+i)))
		}
		for i := range values {
			values[i] = f(labels[i*t.labels : (i+1)*t.labels])
		}
	}
}

// all lists the training rows.
func (t *Table) allRows() []uint32 {
	rows := make([]uint32, len(t.rows))
	for i := range rows {
		rows[i] = uint32(i)
	}
	return rows
}

// Value returns one feature of a training row.
func (t *Table) Value(i uint32, column int) float32 {
	shard, pos := t.At(i)
	if !shard.Sparse {
		return shard.Dense(pos)[column]
	}
	columns, values := shard.NonZeros(pos)
	if at, ok := slices.BinarySearch(columns, uint32(column)); ok {
		return values[at]
	}
	return 0
}

// chooseStorage makes columns of at most two thirds non-zeros sparse, and returns the
// number of entries of all columns. refs lists the training rows, mostly as they lie in memory.
func (t *Table) chooseStorage(refs []dataset.RowRef) (entries int) {
	counts, nonZero := make([]int, t.features), 0
	for _, ref := range refs {
		shard := t.shards[ref.Shard]
		if !shard.Sparse {
			for i, x := range shard.Dense(int(ref.Pos)) {
				if x != 0 {
					counts[i]++
				}
			}
			continue
		}
		columns, values := shard.NonZeros(int(ref.Pos))
		for i, c := range columns {
			if values[i] != 0 {
				counts[c]++
			}
		}
	}
	t.sparse = make([]bool, t.features)
	for c, n := range counts {
		nonZero += n
		t.sparse[c] = 3*n <= 2*len(t.rows)
		if !t.sparse[c] {
			n = len(t.rows)
		}
		entries += n
	}
	t.nonZero = (nonZero + len(t.rows) - 1) / len(t.rows)
	return entries
}

// eachNonZero calls f for the non-zero features of a training row in [from, to).
func (t *Table) eachNonZero(i uint32, from, to int, f func(column int, x float32)) {
	shard, pos := t.At(i)
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
