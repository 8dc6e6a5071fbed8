package binning

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Codes are the bins of samples.
type Codes struct {
	Dense  []uint8  // samples×dense columns
	Start  []uint32 // by sample: where its list begins, and the end
	Listed []uint32 // of each sample, its bins of sparse columns but for zero bins, numbered over all columns
}

// Bins is the columns of a job, features ascending.
type Bins struct {
	Columns []Column
	Dense   int // columns that are not sparse
	All     int // bins of all columns

	once sync.Once // makes what follows when bins are found first
	find *finder
}

// Add adds a column of at least one cut.
func (b *Bins) Add(c Column) {
	c.Base, c.Zero = b.All, c.BinOf(0)
	if !c.Sparse {
		c.At = b.Dense
		b.Dense++
	}
	b.All += c.Bins()
	b.Columns = append(b.Columns, c)
}

// Check returns an error if the bins are more than data of m can have, with most for a feature at most.
func (b *Bins) Check(m *dataset.Manifest, most int) error {
	for i := range b.Columns {
		if n := b.Columns[i].Bins(); n > min(most, m.Rows+1) {
			return fmt.Errorf("%w: feature %d has %d bins, at most %d are possible", ErrBins, b.Columns[i].Feature, n,
				min(most, m.Rows+1))
		}
	}
	if possible := AtMost(m, most); int64(b.All) > possible {
		return fmt.Errorf("%w: there are %d, at most %d are possible", ErrBins, b.All, possible)
	}
	return nil
}

// finder finds bins. Dense columns come first, in the order of their places, then sparse ones. For dense columns, it is
// faster than BinOf: it has their cuts as whole numbers in the same order.
type finder struct {
	columns  []*Column
	features []int32
	counts   []int32       // of cuts, of dense columns
	keys     [][Most]int32 // of the cuts, then the greatest number, of dense columns
	zeros    []uint8       // zero bins, of dense columns
	place    []int32       // of a feature's column in columns; -1: it has none
}

// finder returns the finder of rows of so many features. All lanes share it. No column is added afterwards.
func (b *Bins) finder(features int) *finder {
	b.once.Do(func() { b.find = newFinder(b, features) })
	return b.find
}

func newFinder(b *Bins, features int) *finder {
	f := &finder{columns: make([]*Column, 0, len(b.Columns)), features: make([]int32, 0, len(b.Columns)),
		counts: make([]int32, b.Dense), keys: make([][Most]int32, b.Dense), zeros: make([]uint8, b.Dense),
		place: make([]int32, features)}
	num.Fill(f.place, -1)
	for _, sparse := range []bool{false, true} {
		for i := range b.Columns {
			c := &b.Columns[i]
			if c.Sparse != sparse {
				continue
			}
			f.place[c.Feature] = int32(len(f.columns))
			f.columns, f.features = append(f.columns, c), append(f.features, int32(c.Feature))
			if sparse {
				continue
			}
			f.zeros[c.At] = uint8(c.Zero)
			keys := f.keys[c.At][:]
			for k, x := range c.Cuts {
				keys[k] = int32(orderOf(x) ^ 1<<31)
			}
			num.Fill(keys[len(c.Cuts):], math.MaxInt32)
			f.counts[c.At] = int32(len(c.Cuts))
		}
	}
	return f
}

// binOf is BinOf of a dense column, in eight steps.
func (f *finder) binOf(column int, x float32) int {
	key, keys := int64(int32(orderOf(x+0)^1<<31)), &f.keys[column]
	bin := uint8(128 & ((int64(keys[127]) - key - 1) >> 63))
	bin += uint8(64 & ((int64(keys[bin+63]) - key - 1) >> 63))
	bin += uint8(32 & ((int64(keys[bin+31]) - key - 1) >> 63))
	bin += uint8(16 & ((int64(keys[bin+15]) - key - 1) >> 63))
	bin += uint8(8 & ((int64(keys[bin+7]) - key - 1) >> 63))
	bin += uint8(4 & ((int64(keys[bin+3]) - key - 1) >> 63))
	bin += uint8(2 & ((int64(keys[bin+1]) - key - 1) >> 63))
	bin += uint8(1 & ((int64(keys[bin]) - key - 1) >> 63))
	return min(int(bin), int(f.counts[column]))
}

// row sets codes to the bins of dense columns, given all values of a sample.
func (f *finder) row(codes []uint8, values []float32) {
	done := 0
	if groups := len(codes) / 8; num.Accelerated && groups > 0 {
		findAVX2(&codes[0], &values[0], &f.features[0], &f.counts[0], &f.keys[0], groups)
		done = 8 * groups
	}
	for i := done; i < len(codes); i++ {
		codes[i] = uint8(f.binOf(i, values[f.features[i]]))
	}
}

// findAVX2 finds the bins of groups of eight columns.
//
//go:noescape
func findAVX2(codes *uint8, values *float32, features, counts *int32, keys *[Most]int32, groups int)

// Find finds the bins of samples.
func Find(d *dataset.Data, refs []dataset.RowRef, b *Bins) Codes {
	c := Codes{Dense: make([]uint8, len(refs)*b.Dense), Start: append(make([]uint32, 0, len(refs)+1), 0)}
	f := b.finder(d.Manifest.Features)
	list := func(column int, x float32) {
		if own := f.columns[column]; x == 0 {
			return
		} else if bin := own.BinOf(x); bin != own.Zero {
			c.Listed = append(c.Listed, uint32(own.Base+bin))
		}
	}
	for i, ref := range refs {
		codes := c.Dense[i*b.Dense : (i+1)*b.Dense]
		shard := d.Shard(int(ref.Shard))
		if shard.Sparse {
			copy(codes, f.zeros)
			index, values := shard.NonZeros(int(ref.Pos))
			for k, feature := range index {
				if at := int(f.place[feature]); at >= b.Dense {
					list(at, values[k])
				} else if at >= 0 {
					codes[at] = uint8(f.binOf(at, values[k]))
				}
			}
		} else {
			values := shard.Dense(int(ref.Pos))
			f.row(codes, values)
			for at := b.Dense; at < len(f.columns); at++ {
				list(at, values[f.features[at]])
			}
		}
		c.Start = append(c.Start, uint32(len(c.Listed)))
	}
	c.Listed = slices.Clip(c.Listed)
	return c
}

// Divide moves the samples up to a bin of a column to the front, both sides in order, and returns their number. dense
// is the number of dense columns, and spare has room for all rows.
func (c *Codes) Divide(rows, spare []uint32, column *Column, bin, dense int) int {
	left, right := 0, 0
	for _, row := range rows {
		own := column.Zero
		if !column.Sparse {
			own = int(c.Dense[int(row)*dense+column.At])
		} else {
			list := c.Listed[c.Start[row]:c.Start[row+1]]
			i, _ := slices.BinarySearch(list, uint32(column.Base))
			if i < len(list) && int(list[i]) < column.Base+column.Bins() {
				own = int(list[i]) - column.Base
			}
		}
		if own <= bin {
			rows[left] = row
			left++
		} else {
			spare[right] = row
			right++
		}
	}
	copy(rows[left:], spare[:right])
	return left
}

// AtMost is the greatest number of bins of all columns, with most for a feature.
func AtMost(m *dataset.Manifest, most int) int64 {
	bins := int64(m.Features) * int64(min(most, m.Rows+1))
	if m.NonZeros > 0 { // a column has a bin of zeros, and at most one for each of its other values
		bins = min(bins, m.NonZeros+int64(m.Features))
	}
	return bins
}

// CodesBytes estimates the memory of the codes of all samples, and of what finds them, which all slots share.
// Lists grow by a quarter at a time, so a number of a list takes up to 9 bytes while its list is moved.
func CodesBytes(m *dataset.Manifest) int64 {
	rows := int64(m.Rows)
	dense := rows * int64(m.Features)
	listed := dense / sparseShare // sparse features have at most so many values
	if m.NonZeros > 0 {
		dense, listed = min(dense, sparseShare*m.NonZeros), min(listed, (dense-m.NonZeros)/(sparseShare-1), m.NonZeros)
	}
	return 4*rows + dense + 9*listed + (4*Most+8)*(dense/max(1, rows)) + 16*int64(m.Features)
}

// ValuesBytes estimates the memory of the values that the bins are made from.
func ValuesBytes(m *dataset.Manifest) int64 {
	return 8*min(m.NonZeros, sampledValues+sampledValues/8) + 4*int64(len(m.Shards))*int64(m.Features+1)
}
