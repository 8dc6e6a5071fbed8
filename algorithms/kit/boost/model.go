package boost

import (
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/forest"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/dataset"
)

// modelFormat is the version of the tensors.
const modelFormat = 1

// maxTrees bounds the trees of a model.
const maxTrees = maxRounds * dataset.MaxLabels

// model implements algorithms.Model: p = softmax(start + factor·(sums less their mean over labels)), where sums are of
// the leaves that a row reaches.
type model struct {
	forest.Ensemble
	Scores
}

func newModel(trees []*forest.Tree, features int, start []float64, factor float64) *model {
	m := &model{Scores: Scores{start, factor}}
	m.Join(trees, features, len(start))
	return m
}

// factor returns the factor of the trees' sums in F.
func factor(v *Variant, c *Config, labels int) float64 {
	return float64(c.LearningRate * v.Factor(labels))
}

// Predict implements algorithms.Model.
func (m *model) Predict(dst []float32, refs []dataset.RowRef, shard func(uint32) *dataset.Rows, scratch any) {
	labels := len(m.Start)
	m.EachSums(refs, shard, scratch, func(from int, sums []float64) {
		for at := 0; at < len(sums); at += labels {
			f := sums[at : at+labels]
			m.Apply(f)
			_, sum := exps(f)
			for c, e := range f {
				dst[from*labels+at+c] = float32(e / sum)
			}
		}
	})
}

// Additive implements forest.Adds: the outputs are the scores before the softmax.
func (m *model) Additive() *forest.Additive {
	a := m.Added()
	a.Start, a.Factor, a.Centred, a.Scores, a.Sums = m.Start, m.Factor, true, true, true
	return a
}

// Describe implements algorithms.Model.
func (m *model) Describe() [][2]string {
	return append([][2]string{{"factor of the trees", fmt.Sprintf("%.6g", m.Factor)}}, m.Ensemble.Describe()...)
}

// file is a model in its file.
type file struct {
	Scores
	forest.Arrays
	labels  int
	factors []float64
}

// tensors lists the tensors.
func (f *file) tensors(v *Variant, l *learner.Tensors) {
	l.Settings(modelFormat, learner.Within(&f.Count, 1, maxTrees), learner.Within(&f.Features, 1, dataset.MaxFeatures),
		learner.Within(&f.labels, 1, dataset.MaxLabels))
	l.F64("start", &f.Start, f.labels)
	l.F64("factor", &f.factors, 1)
	if l.Reading() {
		for _, x := range append(f.Start, f.factors...) {
			l.Check(x >= -maxNumber && x <= maxNumber, "the start value or the factor of the summed trees is %v, which is not "+
				"possible", x)
		}
		f.Width = v.width(f.labels)
		l.Check(f.Count%v.trees(f.labels) == 0, "got %d trees, want a multiple of %d, the number of trees in one round",
			f.Count, v.trees(f.labels))
	}
	f.List(l)
}

// maxNumber bounds the first F and the factor of the trees.
const maxNumber = 1e6

// Tensors implements algorithms.Model.
func (m *model) Tensors() []algorithms.Tensor {
	_, labels := m.Shape()
	f := &file{Scores: m.Scores, Arrays: *m.Arrays(), labels: labels, factors: []float64{m.Factor}}
	return f.AddPieces(learner.ListTensors(func(l *learner.Tensors) { f.tensors(nil, l) }))
}

// decodeModel makes a model of its tensors, whose memory it shares.
func decodeModel(v *Variant, tensors []algorithms.Tensor) (*model, error) {
	var f file
	if err := learner.ReadTensors(tensors, func(l *learner.Tensors) { f.tensors(v, l) }); err != nil {
		return nil, err
	}
	trees, err := f.Trees(forest.Values)
	if err != nil {
		return nil, err
	}
	return newModel(trees, f.Features, f.Start, f.factors[0]), nil
}
