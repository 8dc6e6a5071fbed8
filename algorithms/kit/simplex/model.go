// Package simplex has what fits of linear functions to label distributions share, whose predictions are the nearest
// points of the simplex: the model, projections, and products of samples, from which a leader solves for the weights.
package simplex

import (
	"fmt"
	"math"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/graph"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Model predicts the nearest point of the simplex to xW. It implements algorithms.Model.
type Model struct {
	features, labels int
	weights          []float64 // (features+1)×labels, which read features as the rows have them; the offsets last
}

// NewModel makes the model of weights w of scaled features: (features+1)×labels, or features×labels without offsets.
func NewModel(w []float64, features, labels int, scale scaling.Values) *Model {
	m := &Model{features, labels, make([]float64, (features+1)*labels)}
	copy(m.weights, w)
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

// greatest bounds the weights of a model.
const greatest = 1e200

// Bounded reports whether a model can have all weights.
func Bounded(v []float64) bool {
	for _, x := range v {
		if !(math.Abs(x) <= greatest) {
			return false
		}
	}
	return true
}

// MaxProducts bounds the products of samples, and the weights of a model.
const MaxProducts = 1 << 25

// Decode makes a model of its tensors, whose memory it keeps.
func Decode(tensors []algorithms.Tensor) (algorithms.Model, error) {
	m := new(Model)
	return m, learner.ReadTensors(tensors, m.tensors)
}

// tensors lists the tensors.
func (m *Model) tensors(l *learner.Tensors) {
	l.Settings(1, learner.Within(&m.features, 1, dataset.MaxFeatures), learner.Within(&m.labels, 1, dataset.MaxLabels))
	l.Check(int64(m.features+1)*int64(m.labels) <= MaxProducts, "the model has %d features and %d labels, which is too "+
		"many", m.features, m.labels)
	l.F64("weights", &m.weights, m.features+1, m.labels)
	for _, x := range m.weights {
		l.Check(math.Abs(x) <= greatest, "the model has the weight %v", x)
	}
}

// Tensors implements algorithms.Model.
func (m *Model) Tensors() []algorithms.Tensor { return learner.ListTensors(m.tensors) }

// Shape implements algorithms.Model.
func (m *Model) Shape() (features, labels int) { return m.features, m.labels }

// Describe implements algorithms.Model.
func (m *Model) Describe() [][2]string {
	return [][2]string{{"features", fmt.Sprint(m.features)}, {"labels", fmt.Sprint(m.labels)},
		{"weights", fmt.Sprint(len(m.weights))}}
}

// Linear implements maxent.Linear.
func (m *Model) Linear() (weights []float64, link string) {
	return m.weights, "the nearest label distribution"
}

// space is the memory of a prediction.
type space struct{ p, sorted []float64 }

// NewScratch implements algorithms.Model.
func (m *Model) NewScratch() any { return &space{make([]float64, m.labels), make([]float64, m.labels)} }

// Predict implements algorithms.Model.
func (m *Model) Predict(dst []float32, refs []dataset.RowRef, shard func(uint32) *dataset.Rows, working any) {
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
		Project(s.p, s.sorted)
		for c, x := range s.p {
			dst[i*n+c] = float32(x)
		}
	}
}

// Graph implements graph.Model. Of the values t of Project, θ is the greatest: they rise up to it and fall behind it.
func (m *Model) Graph(b *graph.Builder, x graph.Value) (graph.Value, error) {
	n := m.labels
	p := graph.Linear(b, x, m.weights, m.features, n)
	p = b.Op("Sub", p, b.Max(p, 1))
	sorted, _ := b.TopK(p, n, false)
	counts := make([]float64, n)
	for k := range counts {
		counts[k] = float64(k + 1)
	}
	t := b.Op("Div", b.Op("Sub", graph.CumSum(b, sorted, 1), b.Number(1)), b.F64(counts, n))
	p = b.Op("Max", b.Op("Sub", p, b.Max(t, 1)), b.Number(0))
	return b.Cast(b.Op("Div", p, b.Sum(p, 1)), graph.Float32), nil
}
