package maxent

import (
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/blocks"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// MaxWeights is the greatest number of weights of a model: 512 MiB.
const MaxWeights = 1 << 26

// Size returns the number of weights of a model, offsets included, or an error that says that
// there are too many.
func Size(m *dataset.Manifest) (int, error) {
	if n := int64(m.Features+1) * int64(m.Labels); n > MaxWeights {
		return 0, fmt.Errorf("the model would hold %d weights ((%d features + 1) × %d labels), at most %d are possible",
			n, m.Features, m.Labels, MaxWeights)
	}
	return (m.Features + 1) * m.Labels, nil
}

// Model is a trained model.
type Model struct {
	Features, Labels int
	Weights          []float64 // (features+1)×labels
}

// Decode makes a model of its tensors, whose memory it keeps.
func Decode(tensors []algorithms.Tensor) (algorithms.Model, error) {
	m := new(Model)
	return m, learner.ReadTensors(tensors, m.tensors)
}

func (m *Model) tensors(l *learner.Tensors) {
	l.Settings(1, learner.Within(&m.Features, 1, dataset.MaxFeatures), learner.Within(&m.Labels, 1, dataset.MaxLabels))
	l.Check(int64(m.Features+1)*int64(m.Labels) <= MaxWeights, "the model has %d features and %d labels, which is too many", m.Features, m.Labels)
	l.F64("weights", &m.Weights, m.Features+1, m.Labels)
	l.Check(num.Finite64(m.Weights), "the model has a weight that is not finite")
}

// Tensors implements algorithms.Model.
func (m *Model) Tensors() []algorithms.Tensor { return learner.ListTensors(m.tensors) }

// Shape implements algorithms.Model.
func (m *Model) Shape() (features, labels int) { return m.Features, m.Labels }

// NewScratch implements algorithms.Model.
func (m *Model) NewScratch() any {
	s := newSpace(m.Features, m.Labels)
	s.read(m.Weights, false)
	return &s
}

// Predict implements algorithms.Model.
func (m *Model) Predict(dst []float32, refs []dataset.RowRef, shard func(uint32) *dataset.Rows, scratch any) {
	s := scratch.(*space)
	for len(refs) > 0 {
		b := blocks.Next(refs, shard)
		s.predict(&b)
		p := s.rows(&b)
		for i, x := range p {
			if x != x { // weights and features whose products are beyond all numbers
				x = 1 / float64(m.Labels)
			}
			dst[i] = float32(x)
		}
		dst, refs = dst[len(p):], refs[len(b.Refs):]
	}
}

// Describe implements algorithms.Model.
func (m *Model) Describe() [][2]string {
	return [][2]string{{"features", fmt.Sprint(m.Features)}, {"labels", fmt.Sprint(m.Labels)}, {"weights", fmt.Sprint(len(m.Weights))}}
}
