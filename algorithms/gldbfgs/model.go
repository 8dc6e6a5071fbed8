package gldbfgs

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

// modelFormat is the version of the tensors.
const modelFormat = 1

// model is a trained model; see algorithms.Model.
type model struct {
	features, labels int
	weights          []float64 // (features+1)×labels, of features as the rows have them
}

// Model implements algorithms.Trainer.
func (t *Trainer) Model() (algorithms.Model, error) {
	x, err := t.Trained()
	if err != nil {
		return nil, err
	}
	return &model{t.Objective.Features, t.Objective.Labels, t.Objective.Effective(nil, x)}, nil
}

// tensors lists the tensors.
func (m *model) tensors(l *learner.Tensors) {
	l.Settings(modelFormat, learner.Within(&m.features, 1, dataset.MaxFeatures),
		learner.Within(&m.labels, 1, dataset.MaxTargets))
	l.Check(int64(m.features+1)*int64(m.labels) <= maxent.MaxWeights,
		"the model has %d features and %d labels, which is too many", m.features, m.labels)
	l.F64("weights", &m.weights, m.features+1, m.labels)
	l.Check(num.Finite64(m.weights), "the model has a weight that is not finite")
}

// Tensors implements algorithms.Model.
func (m *model) Tensors() []algorithms.Tensor { return learner.ListTensors(m.tensors) }

// Shape implements algorithms.Model.
func (m *model) Shape() (features, labels int) { return m.features, m.labels }

// Describe implements algorithms.Model.
func (m *model) Describe() [][2]string {
	return [][2]string{{"features", fmt.Sprint(m.features)}, {"labels", fmt.Sprint(m.labels)},
		{"weights", fmt.Sprint(len(m.weights))}}
}

// Linear implements maxent.Linear.
func (m *model) Linear() (weights []float64, link string) {
	return m.weights, "(tanh s + 1) / 2 of the score s, scaled to the bounds of the target"
}

// predicting is the working memory of a caller of Predict.
type predicting struct {
	space  blocks.Space
	scores []float64
}

// NewScratch implements algorithms.Model.
func (m *model) NewScratch() any {
	return &predicting{scores: make([]float64, blocks.MaxRows*m.labels)}
}

// Predict implements algorithms.Model: (tanh s + 1) / 2 of the scores s, which is from 0 to 1.
func (m *model) Predict(dst []float32, refs []dataset.RowRef, shard func(uint32) *dataset.Rows, scratch any) {
	s := scratch.(*predicting)
	n := m.labels
	matrix, offsets := m.weights[:m.features*n], m.weights[m.features*n:]
	for len(refs) > 0 {
		b := blocks.Next(refs, shard)
		scores := s.scores[:len(b.Refs)*n]
		for i := range b.Refs {
			copy(scores[i*n:], offsets)
		}
		s.space.AddProduct(scores, &b, matrix, n)
		for i, f := range scores {
			x := (tanh(f) + 1) / 2
			if x != x { // weights and features whose products are beyond all numbers
				x = 0.5
			}
			dst[i] = float32(x)
		}
		dst, refs = dst[len(scores):], refs[len(b.Refs):]
	}
}

// Graph implements graph.Model.
func (m *model) Graph(b *graph.Builder, x graph.Value) (graph.Value, error) {
	s := b.Op("Tanh", graph.Linear(b, x, m.weights, m.features, m.labels))
	return b.Cast(b.Op("Div", b.Op("Add", s, b.Number(1)), b.Number(2)), graph.Float32), nil
}
