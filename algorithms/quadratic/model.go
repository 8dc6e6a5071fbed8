package quadratic

import (
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/graph"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/target"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// modelFormat is the version of the tensors.
const modelFormat = 1

// model implements algorithms.Model.
type model struct {
	features, labels int
	clip             int       // 1: predictions are cut to the scale
	scale            []float64 // the first and the last number
	fit              fit
}

// tensors lists the tensors.
func (m *model) tensors(l *learner.Tensors) {
	l.Settings(modelFormat, learner.Within(&m.features, 1, dataset.MaxFeatures),
		learner.Within(&m.labels, 2, dataset.MaxLabels), learner.Within(&m.clip, 0, 1))
	l.F64("scale", &m.scale, 2)
	f, numbers := &m.fit, []float64{m.fit.Ridge, m.fit.Constant}
	l.F64("constant", &numbers, 2)
	l.F64("feature_shift", &f.Shift, m.features)
	l.F64("feature_scale", &f.Scale, m.features)
	l.F64("linear", &f.Linear, m.features)
	l.F64("square", &f.Square, m.features)
	if !l.Reading() {
		return
	}
	f.Ridge, f.Constant = numbers[0], numbers[1]
	if err := target.CheckEnds(m.scale, m.labels); err != nil {
		l.Check(false, "%w", err)
	}
	for _, v := range [][]float64{numbers, f.Shift, f.Scale, f.Linear, f.Square} {
		l.Check(num.Finite64(v), "the model has a value that is not finite")
	}
}

// Tensors implements algorithms.Model.
func (m *model) Tensors() []algorithms.Tensor { return learner.ListTensors(m.tensors) }

// Shape implements algorithms.Model.
func (m *model) Shape() (features, labels int) { return m.features, m.labels }

// NewScratch implements algorithms.Model: room for the features of a sparse row.
func (m *model) NewScratch() any { return make([]float32, m.features) }

// Describe implements algorithms.Model.
func (m *model) Describe() [][2]string {
	ridge := "none, because the columns are linearly independent"
	if m.fit.Ridge > 0 {
		ridge = fmt.Sprintf("%v, because some columns depend linearly on others", m.fit.Ridge)
	}
	return [][2]string{{"constant features", fmt.Sprint(m.fit.constantColumns())}, {"ridge", ridge},
		{"cut to the range", fmt.Sprint(m.clip == 1)}}
}

// Predict implements algorithms.Model.
func (m *model) Predict(dst []float32, refs []dataset.RowRef, shard func(uint32) *dataset.Rows, scratch any) {
	for i, ref := range refs {
		v := m.fit.number(features(scratch.([]float32), shard(ref.Shard), int(ref.Pos)))
		if m.clip == 1 {
			v = min(max(v, m.scale[0]), m.scale[1])
		}
		dst[i] = target.Float32(v)
	}
}

// number is Eq. 19.
func (f *fit) number(x []float32) float64 {
	sum := f.Constant
	for k, v := range x {
		z := (float64(v) - f.Shift[k]) * f.Scale[k]
		sum += float64(z * (f.Linear[k] + float64(f.Square[k]*z)))
	}
	return sum
}

// Graph implements graph.Model.
func (m *model) Graph(b *graph.Builder, x graph.Value) (graph.Value, error) {
	f, n := &m.fit, m.features
	z := b.Op("Mul", b.Op("Sub", b.Cast(x, graph.Float64), b.F64(f.Shift, n)), b.F64(f.Scale, n))
	terms := b.Op("Mul", z, b.Op("Add", b.F64(f.Linear, n), b.Op("Mul", b.F64(f.Square, n), z)))
	return target.Graph(b, b.Op("Add", b.Number(f.Constant), b.Sum(terms, 1)), m.clip == 1, m.scale), nil
}
