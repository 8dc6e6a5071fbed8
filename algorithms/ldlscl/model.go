package ldlscl

import (
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/blocks"
	"github.com/coppice-ldl/coppice/algorithms/kit/graph"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// mostLog is the greatest absolute value of ln c of a new sample.
const mostLog = 20

// model is a trained model. Its weights read features as they are.
type model struct {
	features, labels, centres int
	weights                   []float64 // (features+1)×labels: W
	shared                    []float64 // centres×labels: V
	codes                     []float64 // (features+1)×centres: the regression of ln c
}

func (m *model) tensors(l *learner.Tensors) {
	l.Settings(1, learner.Within(&m.features, 1, dataset.MaxFeatures), learner.Within(&m.labels, 1, dataset.MaxLabels),
		learner.Within(&m.centres, 1, 100))
	l.Check(int64(m.features+1)*int64(m.labels) <= maxent.MaxWeights && int64(m.features+1)*int64(m.centres) <= maxSums,
		"the model has %d features, %d labels and %d centres, which is too many", m.features, m.labels, m.centres)
	l.F64("weights", &m.weights, m.features+1, m.labels)
	l.F64("code_weights", &m.shared, m.centres, m.labels)
	l.F64("code_regression", &m.codes, m.features+1, m.centres)
	l.Check(num.Finite64(m.weights) && num.Finite64(m.shared) && num.Finite64(m.codes),
		"the model has a weight that is not finite")
}

// Tensors implements algorithms.Model.
func (m *model) Tensors() []algorithms.Tensor { return learner.ListTensors(m.tensors) }

// Shape implements algorithms.Model.
func (m *model) Shape() (features, labels int) { return m.features, m.labels }

// predictor is the working memory of a lane.
type predictor struct {
	space         blocks.Space
	block         blocks.Block
	scores, codes []float64 // MaxRows×labels, MaxRows×centres
	p             []float64 // labels
}

// NewScratch implements algorithms.Model.
func (m *model) NewScratch() any {
	return &predictor{scores: make([]float64, blocks.MaxRows*m.labels), codes: make([]float64, blocks.MaxRows*m.centres),
		p: make([]float64, m.labels)}
}

// Predict implements algorithms.Model.
func (m *model) Predict(dst []float32, refs []dataset.RowRef, shard func(uint32) *dataset.Rows, scratch any) {
	s, n, k := scratch.(*predictor), m.labels, m.centres
	for len(refs) > 0 {
		s.block = blocks.Next(refs, shard)
		rows := len(s.block.Refs)
		scores, codes := s.scores[:rows*n], s.codes[:rows*k]
		for i := range rows {
			copy(scores[i*n:], m.weights[m.features*n:])
			copy(codes[i*k:], m.codes[m.features*k:])
		}
		s.space.AddProduct(scores, &s.block, m.weights[:m.features*n], n)
		s.space.AddProduct(codes, &s.block, m.codes[:m.features*k], k)
		for i := range rows {
			own := scores[i*n:][:n]
			for l, u := range codes[i*k:][:k] {
				num.AddScaled64(own, num.Exp(min(max(u, -mostLog), mostLog)), m.shared[l*n:][:n])
			}
			softmax(s.p, own)
			for c, p := range s.p {
				if p != p { // weights and features whose products are beyond all numbers
					p = 1 / float64(n)
				}
				dst[i*n+c] = float32(p)
			}
		}
		dst, refs = dst[rows*n:], refs[rows:]
	}
}

// Describe implements algorithms.Model.
func (m *model) Describe() [][2]string {
	return [][2]string{{"features", fmt.Sprint(m.features)}, {"labels", fmt.Sprint(m.labels)},
		{"centres", fmt.Sprint(m.centres)}}
}

// Graph implements graph.Model.
func (m *model) Graph(b *graph.Builder, x graph.Value) (graph.Value, error) {
	u := graph.Linear(b, x, m.codes, m.features, m.centres)
	u = b.Op("Min", b.Op("Max", u, b.Number(-mostLog)), b.Number(mostLog))
	shared := b.Op("MatMul", b.Op("Exp", u), b.F64(m.shared, m.centres, m.labels))
	scores := b.Op("Add", graph.Linear(b, x, m.weights, m.features, m.labels), shared)
	return b.Cast(b.Softmax(scores), graph.Float32), nil
}
