package ldlsf

import (
	"fmt"
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// model implements algorithms.Model.
type model struct {
	features, labels int
	weights          []float64 // (features+1)×labels, which read features as the rows have them; the offsets last
}

// newModel makes the model of weights w of scaled features.
func newModel(w []float64, features, labels int, scale scaling.Values) *model {
	m := &model{features, labels, slices.Clone(w)}
	offsets := m.weights[features*labels:]
	for k, factor := range scale.Scale {
		row := m.weights[k*labels:][:labels]
		for c := range row {
			row[c] *= factor
			offsets[c] -= float64(scale.Shift[k] * row[c])
		}
	}
	return m
}

// greatest bounds the weights.
const greatest = 1e200

// tensors lists the tensors.
func (m *model) tensors(l *learner.Tensors) {
	l.Settings(1, learner.Within(&m.features, 1, dataset.MaxFeatures), learner.Within(&m.labels, 1, dataset.MaxLabels))
	l.Check(int64(m.features+1)*int64(m.labels) <= maxSums, "the model has %d features and %d labels, which is too many",
		m.features, m.labels)
	l.F64("weights", &m.weights, m.features+1, m.labels)
	for _, x := range m.weights {
		l.Check(math.Abs(x) <= greatest, "the model has the weight %v", x)
	}
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

// space is the memory of a prediction.
type space struct{ p, sorted []float64 }

// NewScratch implements algorithms.Model.
func (m *model) NewScratch() any { return &space{make([]float64, m.labels), make([]float64, m.labels)} }

// Predict implements algorithms.Model.
func (m *model) Predict(dst []float32, refs []dataset.RowRef, shard func(uint32) *dataset.Rows, working any) {
	s, n := working.(*space), m.labels
	for i, ref := range refs {
		rows, pos := shard(ref.Shard), int(ref.Pos)
		copy(s.p, m.weights[m.features*n:])
		if rows.Sparse {
			columns, values := rows.NonZeros(pos)
			for j, k := range columns {
				num.AddScaled64(s.p, float64(values[j]), m.weights[int(k)*n:][:n])
			}
		} else {
			for k, x := range rows.Dense(pos) {
				num.AddScaled64(s.p, float64(x), m.weights[k*n:][:n])
			}
		}
		s.project()
		for c, x := range s.p {
			dst[i*n+c] = float32(x)
		}
	}
}

// project moves p to the nearest point with values of at least 0 and the sum 1: max(0, p_c - θ).
func (s *space) project() {
	most := slices.Max(s.p)
	if !(math.Abs(most) <= math.MaxFloat64) { // features beyond all numbers
		for c := range s.p {
			s.p[c] = 1 / float64(len(s.p))
		}
		return
	}
	for c := range s.p { // which changes no result, and keeps the digits of great values
		s.p[c] -= most
	}
	copy(s.sorted, s.p)
	slices.Sort(s.sorted)
	sum, theta := 0.0, 0.0
	for k := range s.sorted {
		x := s.sorted[len(s.sorted)-1-k]
		sum += x
		if t := (sum - 1) / float64(k+1); x > t {
			theta = t
		}
	}
	whole := 0.0
	for c, x := range s.p {
		s.p[c] = max(0, x-theta)
		whole += s.p[c]
	}
	for c := range s.p {
		s.p[c] /= whole
	}
}
