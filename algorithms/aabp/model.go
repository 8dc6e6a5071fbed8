package aabp

import (
	"fmt"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/gradient"
	"github.com/coppice-ldl/coppice/algorithms/learner"
	"github.com/coppice-ldl/coppice/algorithms/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// modelFormat is the version of the tensors.
const modelFormat = 1

// model is a trained network; see algorithms.Model.
type model struct {
	features, labels, hidden int
	units                    string // of the hidden layer
	kind                     string // of scaling
	f                        gradient.Function
	weights                  gradient.Weights
}

var unitWords = []string{unitLogistic, unitReLU}

// tensors lists the tensors: settings, then scaling (where there is any), the network's.
func (m *model) tensors(l *learner.Tensors) {
	units, kind := slices.Index(unitWords, m.units), slices.Index(scaling.Kinds, m.kind)
	if !l.Settings(modelFormat, learner.Within(&m.features, 1, dataset.MaxFeatures), learner.Within(&m.labels, 1, dataset.MaxLabels),
		learner.Within(&m.hidden, 1, maxHidden), learner.Within(&units, 0, len(unitWords)-1), learner.Within(&kind, 0, len(scaling.Kinds)-1)) {
		return
	}
	if l.Reading() {
		m.units, m.kind = unitWords[units], scaling.Kinds[kind]
		m.f = newFunction(&Config{Hidden: m.hidden, Units: m.units, Scaling: m.kind}, 0, &dataset.Manifest{Features: m.features, Labels: m.labels})
		l.Check(gradient.Parameters(m.f) <= maxValues, "%d parameters are too many", gradient.Parameters(m.f))
	}
	m.weights.Input.Tensors(l, m.kind, m.features)
	gradient.Tensors(l, m.f, &m.weights.Theta)
	l.Check(num.Finite64(m.weights.Input.Shift) && num.Finite64(m.weights.Input.Scale) && num.Finite32(m.weights.Theta), "a value is not finite")
}

// decodeModel makes a model of its tensors, whose memory it may keep.
func decodeModel(tensors []algorithms.Tensor) (algorithms.Model, error) {
	m := new(model)
	return m, learner.ReadTensors(tensors, m.tensors)
}

// Tensors implements algorithms.Model.
func (m *model) Tensors() []algorithms.Tensor { return learner.ListTensors(m.tensors) }

// Shape implements algorithms.Model.
func (m *model) Shape() (features, labels int) { return m.features, m.labels }

// modelScratch is the working memory of a caller of Predict.
type modelScratch struct {
	gradient.Scratch
	p []float64
}

// NewScratch implements algorithms.Model.
func (m *model) NewScratch() any {
	return &modelScratch{gradient.NewScratch(m.f, m.labels, block), make([]float64, m.labels)}
}

// Predict implements algorithms.Model.
func (m *model) Predict(dst []float32, refs []dataset.RowRef, shard func(uint32) *dataset.Rows, working any) {
	s := working.(*modelScratch)
	for i, ref := range refs {
		s.Batch = append(s.Batch[:0], gradient.SampleOf(shard(ref.Shard), int(ref.Pos)))
		m.f.Predict(s.F, s.Batch, &m.weights, s.Space)
		softmax(s.p, s.F[:m.labels])
		for c, p := range s.p {
			dst[i*m.labels+c] = float32(p)
		}
	}
}

// Describe implements algorithms.Model.
func (m *model) Describe() [][2]string {
	return [][2]string{
		{"hidden units", fmt.Sprintf("%d, %s", m.hidden, m.units)},
		{"scaling", m.kind},
		{"parameters", fmt.Sprint(len(m.weights.Theta))},
	}
}
