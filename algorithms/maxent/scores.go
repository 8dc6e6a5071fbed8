package maxent

import (
	"slices"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/linalg"
	"github.com/coppice-ldl/coppice/internal/num"
)

// The rows of a block, and the features of a block of dense rows. They change no bits.
const (
	blockRows     = 64
	blockFeatures = 1 << 10
)

// block is some consecutive rows of a shard.
type block struct {
	rows *dataset.Rows
	refs []dataset.RowRef
}

// next returns the block that refs begin with.
func next(refs []dataset.RowRef, shard func(uint32) *dataset.Rows) block {
	n := 1
	for n < min(len(refs), blockRows) && refs[n].Shard == refs[0].Shard {
		n++
	}
	return block{shard(refs[0].Shard), refs[:n]}
}

// space is the memory in which blocks of rows are multiplied.
type space struct {
	labels int
	spans  [blockRows]num.Span
	values []float64 // rows×features, float64, of a part of the features
	scores []float64 // blockRows×labels
	logs   []float64 // blockRows: ln Σ exp(s_c)
	shares []float64 // blockRows: one over the sums of the exponentials
}

func newSpace(labels int) space {
	return space{labels: labels, scores: make([]float64, blockRows*labels), logs: make([]float64, blockRows), shares: make([]float64, blockRows)}
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

// entries returns where the entries of sparse rows stand.
func (s *space) entries(b *block) []num.Span {
	for i, ref := range b.refs {
		s.spans[i] = num.Span{From: b.rows.Start[ref.Pos], To: b.rows.Start[ref.Pos+1]}
	}
	return s.spans[:len(b.refs)]
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
	if b.rows.Sparse {
		num.AddSparseProduct64(scores, s.entries(b), b.rows.X, b.rows.Index, weights, s.labels)
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
	if b.rows.Sparse {
		num.AddSparseProductT64(sums, s.entries(b), b.rows.X, b.rows.Index, residuals, s.labels)
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

// exponentials replaces the scores of rows by exp(s_c - most), with each row's greatest score, and
// sets s.shares to each row's 1/Σ of these, s.logs to ln Σ exp(s_c).
func (s *space) exponentials(scores []float64) {
	n := s.labels
	rows := len(scores) / n
	logs, shares := s.logs[:rows], s.shares[:rows]
	for i := range logs {
		row := scores[i*n : i*n+n : i*n+n]
		most := row[0]
		for _, x := range row[1:] {
			most = max(most, x)
		}
		for c := range row {
			row[c] -= most
		}
		logs[i] = most
	}
	num.Exps(scores, scores)
	for i := range logs {
		sum := 0.0
		for _, x := range scores[i*n : i*n+n : i*n+n] {
			sum += x
		}
		shares[i] = 1 / sum
		logs[i] += num.Log(sum)
	}
}

// normalise makes predictions of the exponentials of rows.
func (s *space) normalise(exponentials []float64) {
	for i := range len(exponentials) / s.labels {
		row := exponentials[i*s.labels:][:s.labels]
		for c := range row {
			row[c] *= s.shares[i]
		}
	}
}
