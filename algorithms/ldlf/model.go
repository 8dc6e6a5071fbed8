package ldlf

import (
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/learner"
	"github.com/coppice-ldl/coppice/dataset"
)

// model is a trained forest; see algorithms.Model.
type model struct {
	sizes
	kind    string // of scaling
	phi     []uint32
	q       []float32
	weights weights
	input   []float64 // shifts, then scales
	f       featureFunction
}

func newModel(z sizes, kind string, input []float64, phi []uint32, theta, q []float32) *model {
	return &model{
		sizes: z, kind: kind, phi: phi, q: q, input: input,
		weights: weights{theta: theta, input: newScaling(input)},
		f:       &linear{features: z.features, outputs: z.outputs, bias: z.bias},
	}
}

// Tensors implements algorithms.Model.
func (m *model) Tensors() []algorithms.Tensor { return learner.ListTensors(m.tensors) }

// Shape implements algorithms.Model.
func (m *model) Shape() (features, labels int) { return m.features, m.labels }

// NewScratch implements algorithms.Model.
func (m *model) NewScratch() any { return newScratch(&m.sizes, m.f) }

// Predict implements algorithms.Model: the mean of the trees' predictions.
func (m *model) Predict(dst []float32, refs []dataset.RowRef, shard func(uint32) *dataset.Rows, working any) {
	s := working.(*scratch)
	for i, ref := range refs {
		s.batch = append(s.batch[:0], sampleOf(shard(ref.Shard), int(ref.Pos)))
		m.f.forward(s.f, s.batch, &m.weights, s.ws)
		predictForest(treeOf(dst, i, m.labels), s.f[:m.outputs], m.q, m.phi, &m.sizes, s)
	}
}

// Describe implements algorithms.Model.
func (m *model) Describe() [][2]string {
	return [][2]string{
		{"trees", fmt.Sprint(m.trees)},
		{"depth", fmt.Sprint(m.depth)},
		{"leaves", fmt.Sprintf("%d in each tree", m.leaves)},
		{"outputs", fmt.Sprint(m.outputs)},
		{"bias", fmt.Sprint(m.bias)},
		{"scaling", m.kind},
		{"parameters", fmt.Sprintf("%d of Θ, %d of q", m.theta(), m.sizes.q())},
	}
}
