package forest

import (
	"sync"
	"sync/atomic"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
)

// Ensemble is trees that predict together. Either all trees are as wide as there are labels, or
// all have a width of 1: then tree t is about label t mod labels.
type Ensemble struct {
	features, labels int
	trees            []*Tree

	derive  sync.Once
	derived walker

	couldDivide atomic.Int64 // rows × trees that could have gone as sets of rows
	deriveSets  sync.Once
	derivedSets setForest
}

// Join makes m the ensemble of trees, before it predicts.
func (m *Ensemble) Join(trees []*Tree, features, labels int) {
	m.trees, m.features, m.labels = trees, features, labels
}

// walker returns the trees in the form that prediction reads, made on the first call.
func (m *Ensemble) walker() *walker {
	m.derive.Do(func() { m.derived.build(m) })
	return &m.derived
}

// sets returns the trees in the form that takes many sparse rows down together, made on the first
// call.
func (m *Ensemble) sets() *setForest {
	m.deriveSets.Do(func() { m.derivedSets.build(m) })
	return &m.derivedSets
}

// Shape implements algorithms.Model.
func (m *Ensemble) Shape() (features, labels int) { return m.features, m.labels }

// model implements algorithms.Model.
type model struct{ Ensemble }

// newModel joins trees into a forest.
func newModel(trees []*Tree, features, labels int) *model {
	m := new(model)
	m.Join(trees, features, labels)
	return m
}

// Tensors implements algorithms.Model. The pieces of tensors are the arrays of the trees, not
// copies.
func (m *model) Tensors() []algorithms.Tensor {
	f := newFile(&m.Ensemble)
	return f.AddPieces(learner.ListTensors(f.tensors))
}

// treeTensors is the number of tensors that hold trees, node after node or leaf after leaf.
const treeTensors = 6

// tensors returns the tree's pieces of these tensors.
func (t *Tree) tensors() [treeTensors]algorithms.Tensor {
	return [...]algorithms.Tensor{{U32: t.feature}, {U32: t.left}, {U32: t.samples}, {F64: t.threshold}, {F64: t.gain}, {F32: t.leaves}}
}
