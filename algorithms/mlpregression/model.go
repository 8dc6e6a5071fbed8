package mlpregression

import (
	"fmt"
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/graph"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/network"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/algorithms/kit/target"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// modelFormat is the version of the tensors.
const modelFormat = 1

// model is a trained network; see algorithms.Model.
type model struct {
	features, labels, hidden int
	kind                     string    // of scaling
	target                   []float64 // the mean and the deviation of the training rows' numbers
	f                        gradient.Function
	weights                  gradient.Weights
}

// tensors lists the tensors: settings, the target, scaling (where there is any), the network's.
func (m *model) tensors(l *learner.Tensors) {
	kind := slices.Index(scaling.Kinds, m.kind)
	if !l.Settings(modelFormat, learner.Within(&m.features, 1, dataset.MaxFeatures),
		learner.Within(&m.labels, 1, dataset.MaxLabels),
		learner.Within(&m.hidden, 1, maxHidden), learner.Within(&kind, 0, len(scaling.Kinds)-1)) {
		return
	}
	if l.Reading() {
		m.kind = scaling.Kinds[kind]
		m.f = newFunction(&Config{Hidden: m.hidden, Scaling: m.kind}, 0, &dataset.Manifest{Features: m.features})
		l.Check(gradient.Parameters(m.f) <= maxValues, "the model has %d parameters, which is too many",
			gradient.Parameters(m.f))
	}
	l.F64("target", &m.target, 2)
	m.weights.Input.Tensors(l, m.kind, m.features)
	gradient.Tensors(l, m.f, &m.weights.Theta)
	l.Check(num.Finite64(m.target) && num.Finite64(m.weights.Input.Shift) && num.Finite64(m.weights.Input.Scale) &&
		num.Finite32(m.weights.Theta),
		"the model has a value that is not finite")
}

// Tensors implements algorithms.Model.
func (m *model) Tensors() []algorithms.Tensor { return learner.ListTensors(m.tensors) }

// Shape implements algorithms.Model.
func (m *model) Shape() (features, labels int) { return m.features, m.labels }

// NewScratch implements algorithms.Model.
func (m *model) NewScratch() any {
	s := gradient.NewScratch(m.f, 1, 1)
	return &s
}

// Predict implements algorithms.Model.
func (m *model) Predict(dst []float32, refs []dataset.RowRef, shard func(uint32) *dataset.Rows, working any) {
	s := working.(*gradient.Scratch)
	for i, ref := range refs {
		s.Batch = append(s.Batch[:0], gradient.SampleOf(shard(ref.Shard), int(ref.Pos)))
		m.f.Predict(s.F, s.Batch, &m.weights, s.Space)
		dst[i] = m.number(s.F[0])
	}
}

// number returns the number that an output stands for. Outputs beyond float32, which a model that
// was not trained here may have, count as the greatest float32.
func (m *model) number(f float32) float32 {
	x := m.target[0] + float64(m.target[1]*float64(f))
	if !(x <= math.MaxFloat32) { // not a number as well
		x = math.MaxFloat32
	}
	return float32(max(x, -math.MaxFloat32))
}

// Describe implements algorithms.Model.
func (m *model) Describe() [][2]string {
	return [][2]string{
		{"hidden units", fmt.Sprintf("%d, rectifiers", m.hidden)},
		{"scaling", m.kind},
		{"target", fmt.Sprintf("mean %.4g, standard deviation %.4g", m.target[0], m.target[1])},
		{"parameters", fmt.Sprint(len(m.weights.Theta))},
	}
}

// Graph implements graph.Model.
func (m *model) Graph(b *graph.Builder, x graph.Value) (graph.Value, error) {
	f, err := network.Graph(b, m.f, &m.weights, x)
	if err != nil {
		return "", err
	}
	scaled := b.Op("Mul", b.Number(m.target[1]), b.Cast(f, graph.Float64))
	return target.Graph(b, b.Op("Add", b.Number(m.target[0]), scaled), false, nil), nil
}
