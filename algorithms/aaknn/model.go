package aaknn

import (
	"fmt"
	"sync"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/graph"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/rows"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

const (
	modelFormat  = 1
	targetFormat = 2 // of a model of targets
	// modelSettings is the length of a model's tensor of settings.
	modelSettings = 8
)

// model is the training rows and k; see algorithms.Model.
type model struct {
	rows.Sizes
	k     int
	kind  string // of scaling
	scale scaling.Values
	kept  dataset.Rows
	// targets is true if the rows have targets in bounds in place of distributions.
	targets bool

	once sync.Once
	near *rows.Neighbours // made by the first prediction
}

// tensors lists the tensors.
func (m *model) tensors(l *learner.Tensors) {
	kind := 0
	for i, name := range scaling.Kinds {
		if name == m.kind {
			kind = i
		}
	}
	numbers := append(m.Sizes.Numbers(), learner.Within(&m.k, 1, dataset.MaxRows),
		learner.Within(&kind, 0, len(scaling.Kinds)-1))
	if l.Settings(l.Targets(&m.targets, modelFormat, targetFormat), numbers...) {
		m.kind = scaling.Kinds[kind]
	}
	l.Check(m.k <= m.Rows && m.Labels > 0, "the model is damaged: %d neighbours, %d samples and %d labels do not fit "+
		"together", m.k, m.Rows, m.Labels)
	m.scale.Tensors(l, m.kind, m.Features)
	if l.Reading() {
		err := rows.CheckScale(m.scale.Scale)
		l.Check(err == nil, "%w", err)
	}
	rows.Tensors(l, &m.Sizes, &m.kept)
}

// Tensors implements algorithms.Model.
func (m *model) Tensors() []algorithms.Tensor { return learner.ListTensors(m.tensors) }

// Shape implements algorithms.Model.
func (m *model) Shape() (features, labels int) { return m.Features, m.Labels }

// PredictsTargets reports whether the model predicts targets in bounds.
func (m *model) PredictsTargets() bool { return m.targets }

// Describe implements algorithms.Model.
func (m *model) Describe() [][2]string {
	return [][2]string{
		{"neighbours", fmt.Sprint(m.k)},
		{"samples kept", fmt.Sprint(m.Rows)},
		{"scaling", m.kind},
	}
}

// neighbours returns the neighbours among the rows.
func (m *model) neighbours() *rows.Neighbours {
	m.once.Do(func() { m.near = rows.NewNeighbours(&m.kept, m.scale.Scale) })
	return m.near
}

// scratch is the working memory of one caller of Predict.
type scratch struct {
	search *rows.Search
	sums   []float64 // labels
}

// NewScratch implements algorithms.Model.
func (m *model) NewScratch() any {
	return &scratch{search: m.neighbours().NewSearch([]int{m.k}), sums: make([]float64, m.Labels)}
}

// Predict implements algorithms.Model: the sum of the neighbours' label distributions, in the
// order of their row numbers, divided by its own sum; or the mean of their targets.
func (m *model) Predict(dst []float32, refs []dataset.RowRef, shard func(uint32) *dataset.Rows, working any) {
	s := working.(*scratch)
	s.search.Find(refs, shard, func(i int, nearest []uint32) {
		clear(s.sums)
		num.AddRows64(s.sums, m.kept.D, nearest)
		if m.targets {
			for c, v := range s.sums {
				dst[i*m.Labels+c] = float32(v / float64(m.k))
			}
			return
		}
		total := sum(s.sums)
		for c, v := range s.sums {
			dst[i*m.Labels+c] = share(v, total, m.Labels)
		}
	})
}

func sum(v []float64) (total float64) {
	for _, x := range v {
		total += x
	}
	return total
}

// share returns v/total; labels that no neighbour has any of are all the same.
func share(v, total float64, labels int) float32 {
	if total == 0 {
		return float32(1 / float64(labels))
	}
	return float32(v / total)
}

// Graph implements graph.Model. The neighbours are added in the order of their row numbers.
func (m *model) Graph(b *graph.Builder, x graph.Value) (graph.Value, error) {
	squares, err := rows.SquaresGraph(b, x, &m.kept, m.scale.Scale)
	if err != nil {
		return "", err
	}
	_, nearest := b.TopK(squares, m.k, true)
	nearest, _ = b.TopK(nearest, m.k, true)
	labels := b.With("Gather", graph.Attributes{"axis": 0}, b.F32(m.kept.D, m.Rows, m.Labels), nearest)
	sums := b.Reshape(graph.OrderedSum(b, b.Cast(labels, graph.Float64), 1, m.k), 0, m.Labels)
	if m.targets {
		return b.Cast(b.Op("Div", sums, b.Number(float64(m.k))), graph.Float32), nil
	}
	total := graph.OrderedSum(b, sums, 1, m.Labels)
	equal := b.Number(1 / float64(m.Labels))
	p := b.Op("Where", b.Op("Equal", total, b.Number(0)), equal, b.Op("Div", sums, total))
	return b.Cast(p, graph.Float32), nil
}
