package maxent

import (
	"github.com/coppice-ldl/coppice/algorithms/kit/blocks"
	"github.com/coppice-ldl/coppice/internal/num"
)

// space is the memory in which blocks of rows are multiplied.
type space struct {
	labels   int
	multiply blocks.Space
	scores   []float64 // MaxRows×labels
	logs     []float64 // MaxRows: ln Σ exp(s_c)
	shares   []float64 // MaxRows: one over the sums of the exponentials
}

func newSpace(labels int) space {
	return space{labels: labels, scores: make([]float64, blocks.MaxRows*labels), logs: make([]float64, blocks.MaxRows), shares: make([]float64, blocks.MaxRows)}
}

// score returns w_c·x + b_c of the block's rows (rows×labels). Each is the offset, to which the
// products with the features are added in their order.
func (s *space) score(b *blocks.Block, weights []float64) []float64 {
	n := len(b.Refs)
	scores := s.scores[:n*s.labels]
	features := len(weights)/s.labels - 1
	offsets := weights[features*s.labels:]
	for i := range n {
		copy(scores[i*s.labels:], offsets)
	}
	s.multiply.AddProduct(scores, b, weights[:features*s.labels], s.labels)
	return scores
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
