package cpnn

import (
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/blocks"
	"github.com/coppice-ldl/coppice/algorithms/kit/graph"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// modelFormat is the version of the tensors, modelSettings the length of the tensor of settings.
const (
	modelFormat   = 1
	modelSettings = 5
)

// model is a trained network; see algorithms.Model. Its weights read features as the rows have them.
type model struct {
	sizes
	values []float64
}

// tensors lists the tensors: settings, then the weights in one, a row for each feature, each input of a
// label, b₁ and w₂.
func (m *model) tensors(l *learner.Tensors) {
	number := 0
	if m.number {
		number = 1
	}
	if !l.Settings(modelFormat, learner.Within(&m.features, 1, dataset.MaxFeatures),
		learner.Within(&m.labels, 1, dataset.MaxLabels),
		learner.Within(&m.hidden, 1, maxHidden), learner.Within(&number, 0, 1)) {
		return
	}
	if l.Reading() {
		m.number = number == 1
		l.Check(m.sizes.values() <= maxValues, "the model has %d parameters, which is too many", m.sizes.values())
	}
	l.F64("weights", &m.values, m.features+m.inputs()+2, m.hidden)
	l.Check(num.Finite64(m.values), "the model has a weight that is not finite")
}

// Tensors implements algorithms.Model.
func (m *model) Tensors() []algorithms.Tensor { return learner.ListTensors(m.tensors) }

// Shape implements algorithms.Model.
func (m *model) Shape() (features, labels int) { return m.features, m.labels }

// NewScratch implements algorithms.Model.
func (m *model) NewScratch() any {
	s, w := newSpace(m.sizes), m.split(m.values)
	s.begin(&w)
	return &s
}

// Predict implements algorithms.Model.
func (m *model) Predict(dst []float32, refs []dataset.RowRef, shard func(uint32) *dataset.Rows, working any) {
	s, w := working.(*space), m.split(m.values)
	for len(refs) > 0 {
		b := blocks.Next(refs, shard)
		n := len(b.Refs)
		s.share(&b, w.features)
		for i := range n {
			s.score(i, w.output)
			s.normalise()
			for c, p := range s.scores {
				if p != p { // weights and features whose products are beyond all numbers
					p = 1 / float64(m.labels)
				}
				dst[i*m.labels+c] = float32(p)
			}
		}
		dst, refs = dst[n*m.labels:], refs[n:]
	}
}

// Describe implements algorithms.Model.
func (m *model) Describe() [][2]string {
	input := inputOneHot
	if m.number {
		input = inputNumber
	}
	return [][2]string{
		{"hidden units", fmt.Sprintf("%d, logistic", m.hidden)},
		{"label input", input},
		{"parameters", fmt.Sprint(len(m.values))},
	}
}

// Graph implements graph.Model: hidden units are samples×labels×hidden.
func (m *model) Graph(b *graph.Builder, x graph.Value) (graph.Value, error) {
	s, w := newSpace(m.sizes), m.split(m.values)
	s.begin(&w)
	shared := b.Op("MatMul", b.Cast(x, graph.Float64), b.F64(w.features, m.features, m.hidden))
	sums := b.Op("Add", b.Unsqueeze(shared, 1), b.F64(s.labels, m.labels, m.hidden))
	one := b.Number(1)
	units := b.Op("Div", one, b.Op("Add", one, b.Op("Exp", b.Op("Neg", sums))))
	scores := b.Reshape(b.Op("MatMul", units, b.F64(w.output, m.hidden, 1)), 0, m.labels)
	return b.Cast(b.Softmax(scores), graph.Float32), nil
}
