package softmaxtest

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/dataset"
)

// Model implements algorithms.Trainer.
func (t *trainer) Model() (algorithms.Model, error) {
	v, err := t.Trained()
	if err != nil {
		return nil, err
	}
	return &model{f: t.Function, scaling: t.Scaling, weights: gradient.Weights{Theta: v[0].Data, Input: t.Fit.Values()},
		features: len(t.Fit.Values().Shift), labels: t.labels}, nil
}

// model is a trained softmax regression.
type model struct {
	f                gradient.Function
	scaling          string
	weights          gradient.Weights
	features, labels int
}

// Tensors implements algorithms.Model.
func (m *model) Tensors() []algorithms.Tensor {
	return learner.ListTensors(func(l *learner.Tensors) {
		m.weights.Input.Tensors(l, m.scaling, m.features)
		gradient.Tensors(l, m.f, &m.weights.Theta)
	})
}

// Shape implements algorithms.Model.
func (m *model) Shape() (features, labels int) { return m.features, m.labels }

// NewScratch implements algorithms.Model.
func (m *model) NewScratch() any {
	s := gradient.NewScratch(m.f, m.labels, 1)
	return &s
}

// Predict implements algorithms.Model.
func (m *model) Predict(dst []float32, refs []dataset.RowRef, shard func(uint32) *dataset.Rows, working any) {
	s := working.(*gradient.Scratch)
	for i, ref := range refs {
		s.Batch = append(s.Batch[:0], gradient.SampleOf(shard(ref.Shard), int(ref.Pos)))
		m.f.Predict(s.F, s.Batch, &m.weights, s.Space)
		softmax(dst[i*m.labels:][:m.labels], s.F)
	}
}

// Describe implements algorithms.Model.
func (m *model) Describe() [][2]string { return nil }
