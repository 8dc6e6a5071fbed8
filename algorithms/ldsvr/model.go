package ldsvr

import (
	"fmt"
	"slices"
	"sync"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/graph"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/rows"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/linalg"
)

const (
	modelFormat = 1
	// modelSettings is the length of a model's tensor of settings.
	modelSettings = 9
)

// model is f(x) = Σ_i β_i k(x, x_i) + b over kept rows; see algorithms.Model.
type model struct {
	rows.Sizes
	labels    int
	landmarks int    // 1: the rows are landmarks; 0: all training rows
	kind      string // of scaling
	scale     scaling.Values
	kept      dataset.Rows
	width     []float64 // one: s of the kernel
	beta      []float64 // rows×labels
	bias      []float64 // labels

	once sync.Once
	from *rows.Distances // made by the first prediction
}

// tensors lists the tensors.
func (m *model) tensors(l *learner.Tensors) {
	kind := max(0, slices.Index(scaling.Kinds, m.kind))
	numbers := append(m.Sizes.Numbers(), learner.Within(&m.labels, 1, dataset.MaxLabels),
		learner.Within(&m.landmarks, 0, 1),
		learner.Within(&kind, 0, len(scaling.Kinds)-1))
	if l.Settings(modelFormat, numbers...) {
		m.kind = scaling.Kinds[kind]
	}
	l.Check(m.Sizes.Labels == 0, "the stored samples have %d labels, want none", m.Sizes.Labels)
	m.scale.Tensors(l, m.kind, m.Features)
	rows.Tensors(l, &m.Sizes, &m.kept)
	l.F64("width", &m.width, 1)
	l.F64("beta", &m.beta, m.Rows, m.labels)
	l.F64("bias", &m.bias, m.labels)
	if !l.Reading() {
		return
	}
	err := rows.CheckScale(m.scale.Scale)
	l.Check(err == nil, "%w", err)
	l.Check(m.width[0] > leastWidth && m.width[0] <= mostValue,
		"the width of the Gaussian function is %v, which is not possible", m.width[0])
	for _, v := range [][]float64{m.beta, m.bias} {
		for _, x := range v {
			l.Check(x >= -mostValue && x <= mostValue, "the model has the value %v, which is not possible", x)
		}
	}
}

// leastWidth is below the width of any fit: float32 that differ do so by more.
const leastWidth = 1e-60

// Tensors implements algorithms.Model.
func (m *model) Tensors() []algorithms.Tensor { return learner.ListTensors(m.tensors) }

// Shape implements algorithms.Model.
func (m *model) Shape() (features, labels int) { return m.Features, m.labels }

// Describe implements algorithms.Model.
func (m *model) Describe() [][2]string {
	fit := fmt.Sprintf("exact, of all %d training samples", m.Rows)
	if m.landmarks == 1 {
		fit = fmt.Sprintf("%d landmarks", m.Rows)
	}
	return [][2]string{{"fit", fit}, {"function", fmt.Sprintf("Gaussian of the distance, width %.6g", m.width[0])},
		{"scaling", m.kind}}
}

// distances returns the distances to the rows.
func (m *model) distances() *rows.Distances {
	m.once.Do(func() { m.from = rows.NewDistances(&m.kept, m.scale.Scale) })
	return m.from
}

// atATime is how many rows are predicted at a time.
const atATime = 8

// workspace is the working memory of one caller of Predict.
type workspace struct {
	rows    *rows.Scratch
	kernels []float64 // atATime×Rows
	outputs []float64 // atATime×labels
}

// NewScratch implements algorithms.Model.
func (m *model) NewScratch() any {
	return &workspace{rows: m.distances().NewScratch(), kernels: make([]float64, atATime*m.Rows),
		outputs: make([]float64, atATime*m.labels)}
}

// Predict implements algorithms.Model.
func (m *model) Predict(dst []float32, refs []dataset.RowRef, shard func(uint32) *dataset.Rows, working any) {
	s := working.(*workspace)
	beta := linalg.Of(m.beta, m.Rows, m.labels)
	for at := 0; at < len(refs); at += atATime {
		block := refs[at:min(at+atATime, len(refs))]
		kernels, outputs := s.kernels[:len(block)*m.Rows], s.outputs[:len(block)*m.labels]
		m.distances().To(kernels, block, shard, s.rows)
		rows.Gaussian(kernels, gaussian(m.width[0]))
		for i := range block {
			copy(outputs[i*m.labels:], m.bias)
		}
		linalg.AddProduct(linalg.Of(outputs, len(block), m.labels), linalg.Of(kernels, len(block), m.Rows), beta)
		for i := range block {
			p := outputs[i*m.labels : (i+1)*m.labels]
			shares(p, p)
			for c, v := range p {
				dst[(at+i)*m.labels+c] = float32(v)
			}
		}
	}
}

// Graph implements graph.Model.
func (m *model) Graph(b *graph.Builder, x graph.Value) (graph.Value, error) {
	squares, err := rows.SquaresGraph(b, x, &m.kept, m.scale.Scale)
	if err != nil {
		return "", err
	}
	kernels := rows.GaussianGraph(b, squares, gaussian(m.width[0]))
	f := b.Op("Add", b.Op("MatMul", kernels, b.F64(m.beta, m.Rows, m.labels)), b.F64(m.bias, m.labels))
	// ln σ(f), from the exponential that does not overflow
	tail := b.Op("Log", b.Op("Add", b.Number(1), b.Op("Exp", b.Op("Neg", b.Op("Abs", f)))))
	logs := b.Op("Sub", b.Op("Min", f, b.Number(0)), tail)
	return b.Cast(b.Softmax(logs), graph.Float32), nil
}
