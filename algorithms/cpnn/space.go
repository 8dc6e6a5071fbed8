package cpnn

import (
	"github.com/coppice-ldl/coppice/algorithms/kit/blocks"
	"github.com/coppice-ldl/coppice/internal/num"
)

// space is the memory in which rows go through a network.
type space struct {
	sizes
	multiply blocks.Space
	shared   []float64 // MaxRows×hidden: W₁x
	labels   []float64 // labels×hidden: what a label adds to W₁x, b₁ included
	units    []float64 // labels×hidden: the hidden units of a row
	scores   []float64 // labels: the outputs, then the prediction of a row
}

func newSpace(z sizes) space {
	n := z.labels * z.hidden
	return space{sizes: z, shared: make([]float64, blocks.MaxRows*z.hidden), labels: make([]float64, n),
		units: make([]float64, n), scores: make([]float64, z.labels)}
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

// share sets s.shared to W₁x of the rows of a block: the products by ascending feature.
func (s *space) share(b *blocks.Block, w1 []float64) {
	shared := s.shared[:len(b.Refs)*s.hidden]
	clear(shared)
	s.multiply.AddProduct(shared, b, w1, s.hidden)
}

// score sets s.units and s.scores to those of row i of the block that share has just had.
func (s *space) score(i int, output []float64) {
	shared := s.shared[i*s.hidden:][:s.hidden]
	for c := range s.scores {
		h, own := s.units[c*s.hidden:][:s.hidden], s.labels[c*s.hidden:][:s.hidden]
		for j, x := range shared {
			h[j] = -(x + own[j])
		}
	}
	num.Exps(s.units, s.units)
	for c := range s.scores {
		h, sum := s.units[c*s.hidden:][:s.hidden], 0.0
		for j, w := range output[:len(h)] {
			h[j] = 1 / (1 + h[j])
			sum += float64(w * h[j])
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
	for c := range s.scores {
		s.scores[c] -= most
	}
	num.Exps(s.scores, s.scores)
	for _, x := range s.scores {
		sum += x
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
