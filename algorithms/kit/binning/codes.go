package binning

import (
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Codes are the bins of samples.
type Codes struct {
	Dense  []uint8  // samples×dense columns
	Start  []uint32 // by sample: where its list begins, and the end
	Listed []uint32 // of each sample, its bins of sparse columns but for zero bins, numbered over all columns
}

// cuts are the cuts of a column as whole numbers in the same order, for faster searches than BinOf.
type cuts struct {
	n    int
	keys [Most]int32 // of n cuts, then the greatest number
}

// keyOf returns orderOf as an int32.
func keyOf(x float32) int32 { return int32(orderOf(x+0) ^ 1<<31) }

// binOf is Column.BinOf, in eight steps.
func (c *cuts) binOf(x float32) int {
	key, keys := int64(keyOf(x)), &c.keys
	bin := uint8(128 & ((int64(keys[127]) - key - 1) >> 63))
	bin += uint8(64 & ((int64(keys[bin+63]) - key - 1) >> 63))
	bin += uint8(32 & ((int64(keys[bin+31]) - key - 1) >> 63))
	bin += uint8(16 & ((int64(keys[bin+15]) - key - 1) >> 63))
	bin += uint8(8 & ((int64(keys[bin+7]) - key - 1) >> 63))
	bin += uint8(4 & ((int64(keys[bin+3]) - key - 1) >> 63))
	bin += uint8(2 & ((int64(keys[bin+1]) - key - 1) >> 63))
	bin += uint8(1 & ((int64(keys[bin]) - key - 1) >> 63))
	return min(int(bin), c.n)
}

// cuts returns the cuts of all columns.
func (b *Bins) cuts() []cuts {
	all := make([]cuts, len(b.Columns))
	for i := range b.Columns {
		c := &all[i]
		c.n = len(b.Columns[i].Cuts)
		for k, x := range b.Columns[i].Cuts {
			c.keys[k] = int32(orderOf(x) ^ 1<<31)
		}
		num.Fill(c.keys[c.n:], math.MaxInt32)
	}
	return all
}

// Find finds the bins of samples.
func Find(d *dataset.Data, refs []dataset.RowRef, b *Bins) Codes {
	c := Codes{Dense: make([]uint8, len(refs)*b.Dense), Start: append(make([]uint32, 0, len(refs)+1), 0)}
	zeros := make([]uint8, b.Dense)
	place := make([]int32, d.Manifest.Features) // of a feature's column; -1: it has none
	num.Fill(place, -1)
	all := b.cuts()
	for i := range b.Columns {
		column := &b.Columns[i]
		place[column.Feature] = int32(i)
		if !column.Sparse {
			zeros[column.At] = uint8(column.Zero)
		}
	}
	for i, ref := range refs {
		codes := c.Dense[i*b.Dense : (i+1)*b.Dense]
		set := func(feature int, x float32) {
			if place[feature] < 0 {
				return
			}
			column := &b.Columns[place[feature]]
			bin := all[place[feature]].binOf(x)
			if !column.Sparse {
				codes[column.At] = uint8(bin)
			} else if bin != column.Zero {
				c.Listed = append(c.Listed, uint32(column.Base+bin))
			}
		}
		shard := d.Shard(int(ref.Shard))
		if shard.Sparse {
			copy(codes, zeros)
			index, values := shard.NonZeros(int(ref.Pos))
			for k, feature := range index {
				set(int(feature), values[k])
			}
		} else {
			for feature, x := range shard.Dense(int(ref.Pos)) {
				set(feature, x)
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

// CodesBytes estimates the memory of the codes of all samples. Lists grow by a quarter at a time, so a number of a
// list takes up to 9 bytes while its list is moved.
func CodesBytes(m *dataset.Manifest) int64 {
	rows := int64(m.Rows)
	dense := rows * int64(m.Features)
	listed := dense / sparseShare // sparse features have at most so many values
	if m.NonZeros > 0 {
		dense, listed = min(dense, sparseShare*m.NonZeros), min(listed, (dense-m.NonZeros)/(sparseShare-1), m.NonZeros)
	}
	return 4*rows + dense + 9*listed
}

// ValuesBytes estimates the memory of the values that the bins are made from.
func ValuesBytes(m *dataset.Manifest) int64 {
	return 8*min(m.NonZeros, sampledValues+sampledValues/8) + 4*int64(len(m.Shards))*int64(m.Features+1)
}
