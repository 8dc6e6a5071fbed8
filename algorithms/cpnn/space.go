package cpnn

import (
	"slices"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/linalg"
	"github.com/coppice-ldl/coppice/internal/num"
)

// The rows of a block, and the features of dense rows that are multiplied at once. They change no
// bits.
const (
	blockRows     = 64
	blockFeatures = 1 << 10
)

// space is the memory in which rows go through a network.
type space struct {
	sizes
	spans  [blockRows]num.Span
	dense  []float64 // rows×features of a part of the features of a block
	shared []float64 // blockRows×hidden: W₁x
	labels []float64 // labels×hidden: what a label adds to W₁x, b₁ included
	units  []float64 // labels×hidden: the hidden units of a row
	scores []float64 // labels: the outputs, then the prediction of a row
}

func newSpace(z sizes) space {
	n := z.labels * z.hidden
	return space{sizes: z, shared: make([]float64, blockRows*z.hidden), labels: make([]float64, n), units: make([]float64, n), scores: make([]float64, z.labels)}
}

// begin sets s.labels.
func (s *space) begin(w *weights) {
	for c := range s.sizes.labels {
		to, from := s.labels[c*s.hidden:][:s.hidden], w.labels
		factor := s.numberOf(c)
		if !s.number {
			from, factor = w.labels[c*s.hidden:][:s.hidden], 1
		}
		for j := range to {
			to[j] = float64(factor*from[j]) + w.bias[j]
		}
	}
}

// blockOf returns how many rows of one shard, blockRows at most, refs begin with.
func blockOf(refs []dataset.RowRef) int {
	n := 1
	for n < min(len(refs), blockRows) && refs[n].Shard == refs[0].Shard {
		n++
	}
	return n
}

// part sets s.dense to the features [from, to) of dense rows.
func (s *space) part(rows *dataset.Rows, refs []dataset.RowRef, from, to int) linalg.Matrix {
	n := to - from
	s.dense = slices.Grow(s.dense[:0], len(refs)*n)[:len(refs)*n]
	for i, ref := range refs {
		row := s.dense[i*n:][:n]
		for k, x := range rows.Dense(int(ref.Pos))[from:to] {
			row[k] = float64(x)
		}
	}
	return linalg.Of(s.dense, len(refs), n)
}

// entries returns where the entries of sparse rows stand.
func (s *space) entries(rows *dataset.Rows, refs []dataset.RowRef) []num.Span {
	for i, ref := range refs {
		s.spans[i] = num.Span{From: rows.Start[ref.Pos], To: rows.Start[ref.Pos+1]}
	}
	return s.spans[:len(refs)]
}

// share sets s.shared to W₁x of the rows of a block: the products by ascending feature.
func (s *space) share(rows *dataset.Rows, refs []dataset.RowRef, w1 []float64) {
	shared := s.shared[:len(refs)*s.hidden]
	clear(shared)
	if rows.Sparse {
		num.AddSparseProduct64(shared, s.entries(rows, refs), rows.X, rows.Index, w1, s.hidden)
		return
	}
	to := linalg.Of(shared, len(refs), s.hidden)
	for from := 0; from < s.features; from += blockFeatures {
		end := min(from+blockFeatures, s.features)
		linalg.AddProduct(to, s.part(rows, refs, from, end), linalg.Of(w1[from*s.hidden:end*s.hidden], end-from, s.hidden))
	}
}

// addOuters adds Σ x δᵀ of a block's rows to sums (features×hidden); deltas are rows×hidden.
func (s *space) addOuters(sums []float64, rows *dataset.Rows, refs []dataset.RowRef, deltas []float64) {
	if rows.Sparse {
		num.AddSparseProductT64(sums, s.entries(rows, refs), rows.X, rows.Index, deltas, s.hidden)
		return
	}
	d := linalg.Of(deltas, len(refs), s.hidden)
	for from := 0; from < s.features; from += blockFeatures {
		end := min(from+blockFeatures, s.features)
		x := s.part(rows, refs, from, end)
		linalg.AddProduct(linalg.Of(sums[from*s.hidden:end*s.hidden], end-from, s.hidden), x.T(), d)
	}
}

// score sets s.units and s.scores to those of row i of the block that share has just had.
func (s *space) score(i int, output []float64) {
	shared := s.shared[i*s.hidden:][:s.hidden]
	for c := range s.scores {
		h, own := s.units[c*s.hidden:][:s.hidden], s.labels[c*s.hidden:][:s.hidden]
		sum := 0.0
		for j, x := range shared {
			h[j] = 1 / (1 + num.Exp(-(x + own[j])))
			sum += float64(output[j] * h[j])
		}
		s.scores[c] = sum
	}
}

// normalise makes the prediction of s.scores and returns ln Σ exp(score).
func (s *space) normalise() (log float64) {
	most, sum := s.scores[0], 0.0
	for _, x := range s.scores {
		most = max(most, x)
	}
	for c, x := range s.scores {
		s.scores[c] = num.Exp(x - most)
		sum += s.scores[c]
	}
	for c := range s.scores {
		s.scores[c] /= sum
	}
	return most + num.Log(sum)
}

// loss makes the prediction of s.scores and returns its K-L divergence from d, and the sum of d:
// 1 but for rounding.
func (s *space) loss(d []float32) (kl, mass float64) {
	for c, x := range d {
		if x > 0 {
			kl += float64(float64(x) * (num.Log(float64(x)) - s.scores[c]))
			mass += float64(x)
		}
	}
	return kl + float64(mass*s.normalise()), mass
}
