package forest

import (
	"fmt"
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
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

	draws int     // copies of rows in the sample of a tree
	xlogx []int64 // up to draws
	// copies has the copies of each row in every tree, if trees have no bootstrap samples of their own.
	copies []uint32
	// weights has, for each row, the sum of the weights up to it; nil: rows have no weights.
	weights []float64
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

// Rows are the training rows of a job, numbered from 0 in the order of the dataset's row
// numbers: no result depends on how rows are spread over shards.
type Rows struct {
	rows   []dataset.RowRef // by number
	shards []*dataset.Rows
}

// NewRows numbers the rows of d that refs lists in any order.
func NewRows(d *dataset.Data, refs []dataset.RowRef) Rows {
	var r Rows
	for i := range d.Manifest.Shards {
		r.shards = append(r.shards, d.Shard(i))
	}
	number := func(ref dataset.RowRef) int { return int(r.shards[ref.Shard].Row[ref.Pos]) }
	most := 0
	for _, ref := range refs {
		most = max(most, number(ref))
	}
	if most > 2*len(refs) {
		r.rows = slices.Clone(refs)
		slices.SortFunc(r.rows, func(a, b dataset.RowRef) int { return number(a) - number(b) })
		return r
	}
	absent := dataset.RowRef{Shard: uint32(len(r.shards))}
	r.rows = slices.Repeat([]dataset.RowRef{absent}, most+1)
	for _, ref := range refs {
		r.rows[number(ref)] = ref
	}
	r.rows = slices.DeleteFunc(r.rows, func(ref dataset.RowRef) bool { return ref == absent })
	return r
}

// Refs lists the rows in the order of their numbers. The list must not be changed.
func (r *Rows) Refs() []dataset.RowRef { return r.rows }

// Len returns the number of rows.
func (r *Rows) Len() int { return len(r.rows) }

// At returns the shard and position of a row.
func (r *Rows) At(i uint32) (*dataset.Rows, int) {
	ref := r.rows[i]
	return r.shards[ref.Shard], int(ref.Pos)
}

// Label returns the label distribution of a row.
func (r *Rows) Label(i uint32) []float32 {
	shard, pos := r.At(i)
	return shard.Label(pos)
}

// WeightSums returns, for each row, the sum of the weights up to it; nil: the dataset has no weights. The error is
// algorithms.ErrNoWeights.
func (r *Rows) WeightSums(m *dataset.Manifest) ([]float64, error) {
	if !m.HasWeights {
		return nil, nil
	}
	sum, sums := 0.0, make([]float64, len(r.rows))
	for i := range r.rows {
		shard, pos := r.At(uint32(i))
		sum += shard.WeightOf(pos)
		sums[i] = sum
	}
	if sum == 0 {
		return nil, algorithms.ErrNoWeights
	}
	return sums, nil
}

// Draw draws the bootstrap sample of a tree, with replacement, and sets counts to how often each row was
// drawn: with probabilities in proportion to weights, unless sums, which WeightSums returned, are nil.
func Draw(counts []uint32, sums []float64, key num.Key, tree uint32, draws int) {
	if sums != nil {
		drawWeighted(counts, sums, key, tree, draws)
		return
	}
	s := num.NewStream(key, 0, tree)
	clear(counts)
	for range draws {
		counts[s.Uint64n(uint64(len(counts)))]++
	}
}

// drawWeighted is Draw with probabilities in proportion to weights, given their sums up to each row.
func drawWeighted(counts []uint32, sums []float64, key num.Key, tree uint32, draws int) {
	s := num.NewStream(key, 0, tree)
	clear(counts)
	total := sums[len(sums)-1]
	last, _ := slices.BinarySearch(sums, total) // a row of a weight above 0, if rounding leaves none
	for range draws {
		at := float64(s.Float64() * total)
		row, _ := slices.BinarySearchFunc(sums, at, func(sum, at float64) int {
			if sum > at {
				return 1
			}
			return -1
		})
		counts[min(row, last)]++
	}
}

// copiesOf returns whole numbers in proportion to weights, whose sums up to each row are given, and the sum of these
// numbers. Whole weights stay as they are if their sum is at most 2^20, or 16 for each row. Others are rounded to about
// such a share of their sum: xlogx has a number for each copy.
func copiesOf(sums []float64) (copies []uint32, total int) {
	sum, before, whole := sums[len(sums)-1], 0.0, true
	for _, s := range sums { // sums of whole numbers up to 2^53 are exact
		whole = whole && s == math.Floor(s)
	}
	scale, most := 1.0, float64(min(maxDraws/2, max(1<<20, 16*len(sums))))
	if !whole || sum > most {
		for sum*scale > most {
			scale /= 2
		}
		for 2*sum*scale <= most {
			scale *= 2
		}
	}
	copies = make([]uint32, len(sums))
	for i, s := range sums {
		copies[i] = uint32(math.Floor(float64((s-before)*scale) + 0.5))
		total += int(copies[i])
		before = s
	}
	return copies, total
}

// weigh sets what depends on the weights of rows.
func (t *Table) weigh(c *Config, m *dataset.Manifest) (err error) {
	if t.weights, err = t.WeightSums(m); err != nil {
		return fmt.Errorf("forest: %w", err)
	}
	t.draws = c.draws(len(t.rows))
	switch {
	case c.Bootstrap:
	case t.weights != nil:
		t.copies, t.draws = copiesOf(t.weights)
	default:
		t.copies = slices.Repeat([]uint32{1}, len(t.rows))
	}
	t.xlogx = xlogx(t.draws)
	return nil
}

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
	if err := t.weigh(c, d.Manifest); err != nil {
		return nil, err
	}
	if t.entries <= maxPresorted {
		t.columns.sort(t, t.allRows(), new(sorter))
	}
	return t, nil
}

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

// NoEntry stands for the implicit zeros of a sparse column.
const NoEntry = 1<<32 - 1

// columns are the features of some rows, each sorted by value and then by row:
// column c is entries[start[c]:start[c+1]]. A sparse column has no entries for zeros; a
// dense column has an entry for each row.
type columns struct {
	start   []int
	entries []uint32
}

func (c *columns) column(i int) []uint32 { return c.entries[c.start[i]:c.start[i+1]] }

// Varies reports whether a column has at least two values in a node. entries are the
// node's entries of the column, and rows is the number of its rows. A row without an entry has the value 0.
func Varies(entries []uint32, rows int) bool {
	if len(entries) != rows {
		return len(entries) > 0
	}
	for _, e := range entries[1:] {
		if e&NewValue != 0 {
			return true
		}
	}
	return false
}

// Neighbours returns the entries on both sides of a threshold before entry index of a column,
// NoEntry for an implicit zero. The column's entries in the node, which has so many rows, are
// entries[from:to].
func Neighbours(entries []uint32, from, to, index uint32, zeroLeft bool, rows int) (lower, upper uint32) {
	lower, upper = index-1, index
	if int(to-from) == rows {
		return lower, upper
	}
	switch {
	case zeroLeft && (index == from || entries[index-1]&Positive == 0):
		lower = NoEntry
	case !zeroLeft && (index == to || entries[index]&Positive != 0):
		upper = NoEntry
	}
	return lower, upper
}

// CountNegative returns how many entries of a column, the first ones, are not positive. There
// is at least one entry.
func CountNegative(entries []uint32) int {
	if entries[0]&Positive != 0 {
		return 0
	}
	n, _ := slices.BinarySearchFunc(entries, Positive, func(e uint32, _ int) int { return int(e&Positive) - Positive })
	return n
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
