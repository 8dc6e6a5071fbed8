package boost

import (
	"github.com/coppice-ldl/coppice/algorithms/kit/forest"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// A column of few distinct values is binned: a bin is one value, and an open node has the sums of
// its rows by bin. A child's bins are added up from its rows, or are the node's less the other
// child's, which gives the same numbers, since all sums are exact. Columns of many values are
// sorted, and divided between the children.

// binShare is how many rows there are for each value of a binned column, at least.
const binShare = 8

// binMemory bounds the bins that a grower keeps, in bytes: nodes beyond it have their
// bins added up again.
const binMemory = 64 << 20

// binBytes is the size of a bin.
const binBytes = 24

// binnedColumn is a column with a bin for each value, but for implicit zeros: bins [from, to),
// values ascending, those below zero negative.
type binnedColumn struct{ column, from, to, zero uint32 }

// binned is the binned columns of the training rows.
type binned struct {
	columns []binnedColumn
	entry   []uint32 // by bin: the first entry of the value in its column
	start   []uint32 // by row: where its bins begin in codes; and the end
	codes   []uint32 // the bins of each row, row after row
}

// newBinned returns the binned columns of a table and the others, which stay sorted.
func newBinned(t *forest.Table, features, leafRows int) (b *binned, sorted []uint32) {
	b = &binned{start: make([]uint32, len(t.Refs())+1)}
	for c := range features {
		entries := t.Column(c)
		if !splittable(entries, len(t.Refs()), leafRows) {
			continue
		}
		if !b.add(uint32(c), entries) {
			sorted = append(sorted, uint32(c))
		}
	}
	b.code(t)
	return b, sorted
}

// add adds a column, unless it has too many values.
func (b *binned) add(column uint32, entries []uint32) bool {
	from := len(b.entry)
	negative := forest.CountNegative(entries)
	c := binnedColumn{column: column, from: uint32(from), zero: uint32(from)}
	for i, e := range entries {
		if i > 0 && e&forest.NewValue == 0 {
			continue
		}
		b.entry = append(b.entry, uint32(i))
		if i < negative {
			c.zero++
		}
	}
	if c.to = uint32(len(b.entry)); binShare*int(c.to-c.from) > len(b.start)-1 {
		b.entry = b.entry[:from]
		return false
	}
	b.columns = append(b.columns, c)
	for _, e := range entries {
		b.start[e&forest.RowMask+1]++
	}
	return true
}

// code writes the bins of each row, columns ascending.
func (b *binned) code(t *forest.Table) {
	for i := range b.start[1:] {
		b.start[i+1] += b.start[i]
	}
	b.codes = make([]uint32, b.start[len(b.start)-1])
	next := append([]uint32(nil), b.start...)
	for _, c := range b.columns {
		entries := t.Column(int(c.column))
		for i := c.from; i < c.to; i++ {
			for _, e := range entries[b.entry[i]:b.end(&c, i, len(entries))] {
				at := &next[e&forest.RowMask]
				b.codes[*at] = i
				*at++
			}
		}
	}
}

// end returns the end of a bin's entries in its column.
func (b *binned) end(c *binnedColumn, i uint32, entries int) uint32 {
	if i+1 < c.to {
		return b.entry[i+1]
	}
	return uint32(entries)
}

// sum adds up the bins of some rows.
func (b *binned) sum(bins []bin, rows []uint32, pairs []Pair) {
	clear(bins)
	for _, row := range rows {
		p := pairs[row]
		for _, code := range b.codes[b.start[row]:b.start[row+1]] {
			x := &bins[code]
			x.G += p.G
			x.H += p.H
			x.rows++
		}
	}
}

// subtract takes the bins of a part of a node's rows off the node's.
func subtract(bins, part []bin) {
	part = part[:len(bins)]
	for i := range bins {
		x, y := &bins[i], &part[i]
		x.G -= y.G
		x.H -= y.H
		x.rows -= y.rows
	}
}

// binnedColumns tries the thresholds of all binned columns.
func (s *search) binnedColumns(b *binned, bins []bin) {
	for i := range b.columns {
		c := &b.columns[i]
		s.at = place{column: c.column, list: i, binned: true}
		if c.from+1 == c.to && c.zero == c.from {
			s.twoValues(&bins[c.from], c.from)
		} else {
			s.bins(c, bins)
		}
	}
}

// twoValues tries the threshold of a column of zeros and one positive value.
func (s *search) twoValues(x *bin, index uint32) {
	rows := int(x.rows)
	if rows < s.least || s.rows-rows < s.least {
		return
	}
	s.at.zeroLeft, s.at.lower, s.at.upper = true, forest.NoEntry, index
	s.try(s.total.less(x.Pair), s.rows-rows, index)
}

// bins tries the thresholds of a binned column in ascending order.
func (s *search) bins(c *binnedColumn, bins []bin) {
	sum, rows := Pair{}, 0
	for i := c.from; i < c.to; i++ {
		sum, rows = sum.add(bins[i].Pair), rows+int(bins[i].rows)
	}
	zeros, zero := s.rows-rows, s.total.less(sum)
	left, passed := Pair{}, 0
	for i := c.from; i <= c.to; i++ {
		if i == c.zero && zeros > 0 {
			s.at.upper = forest.NoEntry
			s.try(left, passed, i)
			s.at.zeroLeft, s.at.lower = true, forest.NoEntry
			left, passed = left.add(zero), passed+zeros
		}
		if i < c.to && bins[i].rows > 0 {
			s.at.upper = i
			s.try(left, passed, i)
			s.at.lower = i
			left, passed = left.add(bins[i].Pair), passed+int(bins[i].rows)
		}
	}
}

// value returns the value of a bin, 0 for forest.NoEntry.
func (b *binned) value(t *forest.Table, column, i uint32) float64 {
	if i == forest.NoEntry {
		return 0
	}
	return float64(t.Value(t.Column(int(column))[b.entry[i]]&forest.RowMask, int(column)))
}

// markSides writes the side of each of a node's rows, and of other rows, for a split by a binned
// column.
func (b *binned) markSides(side []uint8, rows []uint32, t *forest.Table, s *split) {
	zero := uint8(1)
	if s.zeroLeft {
		zero = 0
	}
	for _, row := range rows {
		side[row] = zero
	}
	entries := t.Column(int(s.column))
	index := uint32(len(entries))
	if s.index < b.columns[s.list].to {
		index = b.entry[s.index]
	}
	forest.MarkSides(side, nil, entries, int(index), s.zeroLeft)
}

// RowSums are sums of leaves of some rows, with the number of rounds that made them.
type RowSums struct {
	Refs   []dataset.RowRef
	rounds int
	Sums   []float64 // rows×labels
}

func NewRowSums(refs []dataset.RowRef, labels int) *RowSums {
	return &RowSums{Refs: refs, Sums: make([]float64, len(refs)*labels)}
}

// Rounds returns how many boosting rounds v has trees of.
func Rounds(v round.Vars) int {
	rounds := 0
	for i := range v {
		if _, end, ok := groupOf(&v[i]); ok {
			rounds = max(rounds, end)
		}
	}
	return rounds
}

// Advance adds the trees of the rounds that v has and s has not. If s has more rounds than v, it
// begins with the first tree. The sums have the same bits either way.
func (s *RowSums) Advance(f *Form, d *dataset.Data, v round.Vars) error {
	total := Rounds(v)
	if s.rounds == total {
		return nil
	}
	if s.rounds > total {
		s.rounds = 0
		clear(s.Sums)
	}
	var trees []*forest.Tree
	for i := range v {
		first, end, ok := groupOf(&v[i])
		if !ok || end <= s.rounds {
			continue
		}
		b, err := v[i].Data, error(nil)
		for ; first < end; first++ {
			if first < s.rounds {
				b, err = f.skip(b)
			} else {
				trees, b, err = f.next(trees, b)
			}
			if err != nil {
				return err
			}
		}
	}
	s.add(f, d, trees)
	s.rounds = total
	return nil
}

// add adds the leaves of trees.
func (s *RowSums) add(f *Form, d *dataset.Data, trees []*forest.Tree) {
	var e forest.Ensemble
	e.Join(trees, f.features, f.labels)
	e.AddSums(s.Sums, s.Refs, func(i uint32) *dataset.Rows { return d.Shard(int(i)) }, e.NewScratch())
}
