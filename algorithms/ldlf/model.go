package ldlf

import (
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
)

// modelFormat is the version of the tensors below.
const modelFormat = 1

// Numbers of the scalings in a model's settings.
var scalings = []string{scalingNone, scalingStandard, scalingMinMax}

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

// Tensors implements algorithms.Model: settings, then scaling (where there is
// any), φ, Θ, q.
func (m *model) Tensors() []algorithms.Tensor {
	tensors := []algorithms.Tensor{{Name: "settings", Dims: []int{settingsLength}, U32: m.settings()}}
	if m.input != nil {
		x := newScaling(m.input)
		tensors = append(tensors,
			algorithms.Tensor{Name: "scaling.shift", Dims: []int{m.features}, F64: x.shift},
			algorithms.Tensor{Name: "scaling.scale", Dims: []int{m.features}, F64: x.scale})
	}
	rows := m.theta() / m.outputs
	return append(tensors,
		algorithms.Tensor{Name: "phi", Dims: []int{m.trees, m.splits}, U32: m.phi},
		algorithms.Tensor{Name: "theta", Dims: []int{rows, m.outputs}, F32: m.weights.theta},
		algorithms.Tensor{Name: "q", Dims: []int{m.trees, m.leaves, m.labels}, F32: m.q})
}

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
		predictForest(chunk(dst, i, m.labels), s.f[:m.outputs], m.q, m.phi, &m.sizes, s)
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
