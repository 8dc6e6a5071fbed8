package forest

import (
	"sync"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/learner"
)

// model implements algorithms.Model.
type model struct {
	features, labels int
	trees            []*Tree

	derive  sync.Once
	derived walker
}

// newModel joins trees into a forest.
func newModel(trees []*Tree, features, labels int) *model {
	return &model{trees: trees, features: features, labels: labels}
}

// walker returns the forest in the form that prediction reads, made on the first call.
func (m *model) walker() *walker {
	m.derive.Do(func() { m.derived.build(m) })
	return &m.derived
}

// Tensors implements algorithms.Model. The pieces of tensors are the arrays of the trees, not
// copies.
func (m *model) Tensors() []algorithms.Tensor {
	a := arrays{count: len(m.trees), features: m.features, labels: m.labels}
	for _, t := range m.trees {
		a.nodes, a.leaves = append(a.nodes, uint32(t.Nodes())), append(a.leaves, uint32(t.Leaves()))
		a.evaluations = append(a.evaluations, float64(t.Evaluations))
	}
	tensors := learner.ListTensors(a.tensors)
	for _, t := range m.trees {
		for i, piece := range t.tensors() {
			x := &tensors[len(tensors)-treeTensors+i]
			x.Pieces = append(x.Pieces, piece)
		}
	}
	return tensors
}

// treeTensors is the number of tensors that hold trees, node after node or leaf after leaf.
const treeTensors = 6

// tensors returns the tree's pieces of these tensors.
func (t *Tree) tensors() [treeTensors]algorithms.Tensor {
	return [...]algorithms.Tensor{{U32: t.feature}, {U32: t.left}, {U32: t.samples}, {F64: t.threshold}, {F64: t.gain}, {F32: t.leaves}}
}

// Shape implements algorithms.Model.
func (m *model) Shape() (features, labels int) { return m.features, m.labels }
