package ranking

import (
	"fmt"
	"slices"
	"sync"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/graph"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/rows"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/algorithms/kit/target"
	"github.com/coppice-ldl/coppice/dataset"
)

// The versions of the tensors.
const (
	rawFormat    = 1
	scaledFormat = 2 // with the kind of scaling, and its values
)

// model implements algorithms.Model.
type model struct {
	labels  int
	kernels int
	clip    int // 1: predictions are cut to the scale
	damped  int // steps
	rows    *dataset.Rows
	sizes   rows.Sizes
	kind    string // of scaling
	scaler  scaling.Values

	u, v   []float64
	widths []float64 // δ_o²
	scale  []float64 // the first and the last number
	trace  []float64 // the objective before each solution, and at the end

	derive    sync.Once
	distances *rows.Distances
}

// tensors lists the tensors.
func (m *model) tensors(l *learner.Tensors) {
	if l.Reading() {
		m.rows = new(dataset.Rows)
	}
	count, format, kind := len(m.trace), uint32(rawFormat), max(0, slices.Index(scaling.Kinds, m.kind))
	if kind > 0 || l.Reading() && isScaled(l.Left()) {
		format = scaledFormat
	}
	numbers := append([]learner.Number{
		learner.Within(&m.labels, 2, dataset.MaxLabels), learner.Within(&m.kernels, 1, maxKernels),
		learner.Within(&m.clip, 0, 1),
		learner.Within(&m.damped, 0, 1<<31-1), learner.Within(&count, 1, 1<<20),
	}, m.sizes.Numbers()...)
	if format == scaledFormat {
		numbers = append(numbers, learner.Within(&kind, 1, len(scaling.Kinds)-1))
	}
	if l.Settings(format, numbers...) {
		m.kind = scaling.Kinds[kind]
	}
	l.Check(m.sizes.Labels == 0, "the stored samples have %d labels, want none", m.sizes.Labels)
	l.F64("u", &m.u, m.sizes.Rows)
	l.F64("v", &m.v, m.kernels)
	l.F64("squared_widths", &m.widths, m.kernels)
	l.F64("scale", &m.scale, 2)
	l.F64("objective", &m.trace, count)
	m.scaler.Tensors(l, m.kind, m.sizes.Features)
	rows.Tensors(l, &m.sizes, m.rows)
	if l.Reading() {
		m.check(l)
	}
}

// isScaled reports whether the first tensor, if it is the settings of a model, is one of scaled features.
func isScaled(all []algorithms.Tensor) bool {
	return len(all) > 0 && len(all[0].U32) > 0 && all[0].U32[0] == scaledFormat
}

func (m *model) check(l *learner.Tensors) {
	if err := rows.CheckScale(m.scaler.Scale); err != nil {
		l.Check(false, "%w", err)
	}
	if err := target.CheckEnds(m.scale, m.labels); err != nil {
		l.Check(false, "%w", err)
	}
	for _, all := range [][]float64{m.u, m.v, m.widths, m.trace} {
		for _, x := range all {
			l.Check(x-x == 0, "one of its values is not finite")
		}
	}
	for _, w := range m.widths {
		l.Check(w > 0, "the squared width of a kernel is %v", w)
	}
}

// Tensors implements algorithms.Model.
func (m *model) Tensors() []algorithms.Tensor { return learner.ListTensors(m.tensors) }

// Shape implements algorithms.Model.
func (m *model) Shape() (features, labels int) { return m.sizes.Features, m.labels }

// Describe implements algorithms.Model.
func (m *model) Describe() [][2]string {
	objective := fmt.Sprintf("%.6g", m.trace[len(m.trace)-1])
	return [][2]string{
		{"landmarks", fmt.Sprint(m.sizes.Rows)}, {"weights of kernels", fmt.Sprintf("%.6g", m.v)}, {"objective", objective},
		{"damped steps", fmt.Sprint(m.damped)}, {"cut to the range", fmt.Sprint(m.clip == 1)}, {"scaling", m.kind},
	}
}

// predictor is the working memory of one caller of Predict.
type predictor struct {
	*rows.Scratch
	squares, kernel, sums []float64
}

// NewScratch implements algorithms.Model.
func (m *model) NewScratch() any {
	m.derive.Do(func() { m.distances = rows.NewDistances(m.rows, m.scaler.Scale) })
	n := m.sizes.Rows
	return &predictor{Scratch: m.distances.NewScratch(), squares: make([]float64, n), kernel: make([]float64, n),
		sums: make([]float64, m.kernels)}
}

// Predict implements algorithms.Model: Eq. 4.
func (m *model) Predict(dst []float32, refs []dataset.RowRef, shard func(uint32) *dataset.Rows, scratch any) {
	s := scratch.(*predictor)
	for i := range refs {
		m.distances.To(s.squares, refs[i:i+1], shard, s.Scratch)
		for o, width := range m.widths {
			copy(s.kernel, s.squares)
			rows.Gaussian(s.kernel, width)
			s.sums[o] = dot(s.kernel, m.u)
		}
		v := dot(s.sums, m.v)
		if m.clip == 1 {
			v = min(max(v, m.scale[0]), m.scale[1])
		}
		dst[i] = target.Float32(v)
	}
}

// Graph implements graph.Model.
func (m *model) Graph(b *graph.Builder, x graph.Value) (graph.Value, error) {
	squares, err := rows.SquaresGraph(b, x, m.rows, m.scaler.Scale)
	if err != nil {
		return "", err
	}
	u, sums := b.F64(m.u, len(m.u), 1), []graph.Value(nil)
	for _, width := range m.widths {
		sums = append(sums, b.Op("MatMul", rows.GaussianGraph(b, squares, width), u))
	}
	v := b.Op("MatMul", b.Concat(1, sums...), b.F64(m.v, len(m.v), 1))
	return target.Graph(b, v, m.clip == 1, m.scale), nil
}
