package maxent

import (
	"slices"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/linalg"
	"github.com/coppice-ldl/coppice/internal/num"
)

// The rows and the features of a block of dense rows. They change no bits.
const (
	blockRows     = 64
	blockFeatures = 1 << 10
)

// block is consecutive rows of one storage: some dense ones, or one sparse one.
type block struct {
	rows   *dataset.Rows
	refs   []dataset.RowRef
	sparse bool
}

// next returns the block that refs begin with.
func next(refs []dataset.RowRef, shard func(uint32) *dataset.Rows) block {
	rows := shard(refs[0].Shard)
	if rows.Sparse {
		return block{rows, refs[:1], true}
	}
	n := 1
	for n < min(len(refs), blockRows) && refs[n].Shard == refs[0].Shard {
		n++
	}
	return block{rows, refs[:n], false}
}

// space is the memory in which blocks of rows are multiplied.
type space struct {
	labels int
	values []float64 // rows×features, float64, of a part of the features
	scores []float64 // blockRows×labels
}

func newSpace(labels int) space {
	return space{labels: labels, scores: make([]float64, blockRows*labels)}
}

// part sets s.values to the features [from, to) of dense rows.
func (s *space) part(b *block, from, to int) linalg.Matrix {
	n := to - from
	s.values = slices.Grow(s.values[:0], len(b.refs)*n)[:len(b.refs)*n]
	for i, ref := range b.refs {
		row := s.values[i*n:][:n]
		for k, x := range b.rows.Dense(int(ref.Pos))[from:to] {
			row[k] = float64(x)
		}
	}
	return linalg.Of(s.values, len(b.refs), n)
}

// score returns w_c·x + b_c of the block's rows (rows×labels). Each is the offset, to which the
// products with the features are added in their order.
func (s *space) score(b *block, weights []float64) []float64 {
	n := len(b.refs)
	scores := s.scores[:n*s.labels]
	features := len(weights)/s.labels - 1
	offsets := weights[features*s.labels:]
	for i := range n {
		copy(scores[i*s.labels:], offsets)
	}
	if b.sparse {
		columns, values := b.rows.NonZeros(int(b.refs[0].Pos))
		num.MulAddRowsAt64(scores, values, columns, weights)
		return scores
	}
	to := linalg.Of(scores, n, s.labels)
	for from := 0; from < features; from += blockFeatures {
		end := min(from+blockFeatures, features)
		linalg.AddProduct(to, s.part(b, from, end), linalg.Of(weights[from*s.labels:end*s.labels], end-from, s.labels))
	}
	return scores
}

// addOuters adds Σ x rᵀ of the block's rows, of which score has just had the same ones, to sums
// (features×labels); residuals are rows×labels.
func (s *space) addOuters(sums []float64, b *block, residuals []float64) {
	if b.sparse {
		columns, values := b.rows.NonZeros(int(b.refs[0].Pos))
		num.AddOuterAt64(sums, columns, values, residuals)
		return
	}
	features := len(sums) / s.labels
	r := linalg.Of(residuals, len(b.refs), s.labels)
	for from := 0; from < features; from += blockFeatures {
		end := min(from+blockFeatures, features)
		if features > blockFeatures { // else score has left them all
			s.part(b, from, end)
		}
		x := linalg.Of(s.values, len(b.refs), end-from)
		linalg.AddProduct(linalg.Of(sums[from*s.labels:end*s.labels], end-from, s.labels), x.T(), r)
	}
}

// greatest bounds scores, so that sums of features and weights beyond all numbers have shares.
const greatest = 0x1p1000

// Softmax replaces the scores of one row by their shares exp(s_c) / Σ exp(s_c') and returns
// ln Σ exp(s_c).
func Softmax(s []float64) float64 {
	most, sum := -greatest, 0.0
	for c, x := range s {
		if !(x >= -greatest && x <= greatest) {
			x = min(max(x, -greatest), greatest)
			if x != x {
				x = -greatest
			}
			s[c] = x
		}
		most = max(most, x)
	}
	for c, x := range s {
		s[c] = num.Exp(x - most)
		sum += s[c]
	}
	for c := range s {
		s[c] /= sum
	}
	return most + num.Log(sum)
}
