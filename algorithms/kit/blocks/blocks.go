// Package blocks multiplies some rows of a shard at a time by matrices of float64, dense rows and
// sparse ones: for kernels and models whose first layer is linear.
package blocks

import (
	"slices"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/linalg"
	"github.com/coppice-ldl/coppice/internal/num"
)

// MaxRows is the greatest number of rows of a block; maxFeatures is how many features of dense rows are
// multiplied at once. They change no bits.
const (
	MaxRows     = 64
	maxFeatures = 1 << 10
)

// Block is some rows of one shard.
type Block struct {
	Rows *dataset.Rows
	Refs []dataset.RowRef
}

// Next returns the block that refs begin with, which are not empty.
func Next(refs []dataset.RowRef, shard func(uint32) *dataset.Rows) Block {
	n := 1
	for n < min(len(refs), MaxRows) && refs[n].Shard == refs[0].Shard {
		n++
	}
	return Block{shard(refs[0].Shard), refs[:n]}
}

// Label returns the label distribution of row i of the block.
func (b *Block) Label(i int) []float32 { return b.Rows.Label(int(b.Refs[i].Pos)) }

// Weight returns the weight of row i of the block.
func (b *Block) Weight(i int) float64 { return b.Rows.WeightOf(int(b.Refs[i].Pos)) }

// Spans returns the spans of the entries of the block's rows, which are sparse, in the memory of dst.
func (b *Block) Spans(dst *[MaxRows]num.Span) []num.Span {
	for i, ref := range b.Refs {
		dst[i] = num.Span{From: b.Rows.Start[ref.Pos], To: b.Rows.Start[ref.Pos+1]}
	}
	return dst[:len(b.Refs)]
}

// Space is the memory in which blocks are multiplied. The zero value is ready.
type Space struct {
	spans [MaxRows]num.Span
	dense []float64 // rows×features of a part of the features of a block
}

// AddProduct adds the product of a block and m (features×n) to dst (rows×n). Each element is one chain over
// ascending features.
func (s *Space) AddProduct(dst []float64, b *Block, m []float64, n int) {
	if b.Rows.Sparse {
		num.AddSparseProduct64(dst, b.Spans(&s.spans), b.Rows.X, b.Rows.Index, m, n)
		return
	}
	to, features := linalg.Of(dst, len(b.Refs), n), len(m)/n
	for from := 0; from < features; from += maxFeatures {
		end := min(from+maxFeatures, features)
		linalg.AddProduct(to, s.part(b, from, end), linalg.Of(m[from*n:end*n], end-from, n))
	}
}

// AddProductT adds the product of a block's transpose and x (rows×n) to sums (features×n). The block is the one that
// AddProduct has just had. Each element is one chain over ascending rows.
func (s *Space) AddProductT(sums []float64, b *Block, x []float64, n int) {
	if b.Rows.Sparse {
		num.AddSparseProductT64(sums, b.Spans(&s.spans), b.Rows.X, b.Rows.Index, x, n)
		return
	}
	right, features := linalg.Of(x, len(b.Refs), n), len(sums)/n
	for from := 0; from < features; from += maxFeatures {
		end := min(from+maxFeatures, features)
		if features > maxFeatures { // else AddProduct has left them all
			s.part(b, from, end)
		}
		left := linalg.Of(s.dense, len(b.Refs), end-from)
		linalg.AddProduct(linalg.Of(sums[from*n:end*n], end-from, n), left.T(), right)
	}
}

// part sets s.dense to the features [from, to) of dense rows.
func (s *Space) part(b *Block, from, to int) linalg.Matrix {
	n := to - from
	s.dense = slices.Grow(s.dense[:0], len(b.Refs)*n)[:len(b.Refs)*n]
	for i, ref := range b.Refs {
		row := s.dense[i*n:][:n]
		for k, x := range b.Rows.Dense(int(ref.Pos))[from:to] {
			row[k] = float64(x)
		}
	}
	return linalg.Of(s.dense, len(b.Refs), n)
}
