package ldlf

import (
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/network"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
)

// model is a trained forest; see algorithms.Model.
type model struct {
	sizes
	kind    string // of scaling
	phi     []uint32
	q       []float32
	weights gradient.Weights
	f       gradient.Function
}

func newModel(z sizes, f gradient.Function, kind string, x scaling.Values, phi []uint32, theta, q []float32) *model {
	return &model{sizes: z, kind: kind, phi: phi, q: q, weights: gradient.Weights{Theta: theta, Input: x}, f: f}
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
		s.Batch = append(s.Batch[:0], gradient.SampleOf(shard(ref.Shard), int(ref.Pos)))
		m.f.Predict(s.F, s.Batch, &m.weights, s.Space)
		predictForest(chunk(dst, i, m.labels), s.F[:m.outputs], m.q, m.phi, &m.sizes, s)
	}
}

// Describe implements algorithms.Model.
func (m *model) Describe() [][2]string {
	all := [][2]string{
		{"trees", fmt.Sprint(m.trees)},
		{"depth", fmt.Sprint(m.depth)},
		{"leaves", fmt.Sprintf("%d in each tree", m.leaves)},
		{"outputs", fmt.Sprint(m.outputs)},
		{"bias", fmt.Sprint(m.bias)},
		{"scaling", m.kind},
		{"parameters", fmt.Sprintf("%d of the splits (Θ), %d of the leaves (q)", m.theta(), m.sizes.q())},
	}
	if n, ok := m.f.(*network.Network); ok {
		all = append(all, [2]string{"network", network.Describe(n)})
	}
	return all
}
