package boost

import (
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/forest"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// modelFormat is the version of the tensors.
const modelFormat = 1

// maxTrees bounds the trees of a model.
const maxTrees = maxRounds * dataset.MaxLabels

// model implements algorithms.Model: p = softmax(start + factor·(sums less their mean over labels)), where sums are of
// the leaves that a row reaches.
type model struct {
	forest.Ensemble
	scores
}

// scores make a distribution of the sums of leaves.
type scores struct {
	start  []float64 // F before the first round, by label
	factor float64   // of the sums
}

func newModel(trees []*forest.Tree, features int, start []float64, factor float64) *model {
	m := &model{scores: scores{start: start, factor: factor}}
	m.Join(trees, features, len(start))
	return m
}

// factor returns the factor of the trees' sums in F.
func factor(v *Variant, c *Config, labels int) float64 {
	return float64(c.LearningRate * v.Factor(labels))
}

// apply makes F of a row's sums of leaves, in place.
func (s *scores) apply(f []float64) {
	mean := 0.0
	for _, sum := range f {
		mean += sum
	}
	mean /= float64(len(f))
	for c, sum := range f {
		f[c] = s.start[c] + float64(s.factor*(sum-mean))
	}
}

// softmax replaces F by p, and returns ln Σ exp F.
func softmax(f []float64) float64 {
	most, sum := f[0], 0.0
	for _, x := range f[1:] {
		most = max(most, x)
	}
	for c, x := range f {
		f[c] = num.Exp(x - most)
		sum += f[c]
	}
	for c := range f {
		f[c] /= sum
	}
	return most + num.Log(sum)
}

// logSumExp returns ln Σ exp F.
func logSumExp(f []float64) float64 {
	most, sum := f[0], 0.0
	for _, x := range f[1:] {
		most = max(most, x)
	}
	for _, x := range f {
		sum += num.Exp(x - most)
	}
	return most + num.Log(sum)
}

// Predict implements algorithms.Model.
func (m *model) Predict(dst []float32, refs []dataset.RowRef, shard func(uint32) *dataset.Rows, scratch any) {
	labels := len(m.start)
	m.EachSums(refs, shard, scratch, func(from int, sums []float64) {
		for at := 0; at < len(sums); at += labels {
			f := sums[at : at+labels]
			m.apply(f)
			softmax(f)
			for c, p := range f {
				dst[from*labels+at+c] = float32(p)
			}
		}
	})
}

// Describe implements algorithms.Model.
func (m *model) Describe() [][2]string {
	return append([][2]string{{"factor of the trees", fmt.Sprintf("%.6g", m.factor)}}, m.Ensemble.Describe()...)
}

// file is a model in its file.
type file struct {
	scores
	forest.Arrays
	labels int
	factor []float64
}

// tensors lists the tensors.
func (f *file) tensors(v *Variant, l *learner.Tensors) {
	l.Settings(modelFormat, learner.Within(&f.Count, 1, maxTrees), learner.Within(&f.Features, 1, dataset.MaxFeatures),
		learner.Within(&f.labels, 1, dataset.MaxLabels))
	l.F64("start", &f.start, f.labels)
	l.F64("factor", &f.factor, 1)
	if l.Reading() {
		for _, x := range append(f.start, f.factor...) {
			l.Check(x >= -maxNumber && x <= maxNumber, "the start value or the factor of the summed trees is %v, which is not possible", x)
		}
		f.Width = v.width(f.labels)
		l.Check(f.Count%v.trees(f.labels) == 0, "got %d trees, want a multiple of %d, the number of trees in one round", f.Count, v.trees(f.labels))
	}
	f.List(l)
}

// maxNumber bounds the first F and the factor of the trees.
const maxNumber = 1e6

// Tensors implements algorithms.Model.
func (m *model) Tensors() []algorithms.Tensor {
	_, labels := m.Shape()
	f := &file{scores: m.scores, Arrays: *m.Arrays(), labels: labels, factor: []float64{m.factor}}
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
	return newModel(trees, f.Features, f.start, f.factor[0]), nil
}
