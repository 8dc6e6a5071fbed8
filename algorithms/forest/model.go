package forest

import (
	"errors"
	"sync"

	"github.com/coppice-ldl/coppice/algorithms"
)

// modelFormat is the version of the tensors below.
const modelFormat = 1

// ErrModel is wrapped by every error about the tensors of a model.
var ErrModel = errors.New("forest: not a forest's tensors")

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

// Tensors implements algorithms.Model. FORMAT.md describes the tensors. Their pieces are
// the arrays of the trees, not copies.
func (m *model) Tensors() []algorithms.Tensor {
	trees, nodes, leaves := len(m.trees), 0, 0
	sizes := algorithms.Tensor{Name: "nodes", Dims: []int{trees}, U32: make([]uint32, trees)}
	ends := algorithms.Tensor{Name: "leaves", Dims: []int{trees}, U32: make([]uint32, trees)}
	evaluations := algorithms.Tensor{Name: "gain_evaluations", Dims: []int{trees}, F64: make([]float64, trees)}
	for i, t := range m.trees {
		nodes, leaves = nodes+t.Nodes(), leaves+t.Leaves()
		sizes.U32[i], ends.U32[i], evaluations.F64[i] = uint32(t.Nodes()), uint32(t.Leaves()), float64(t.Evaluations)
	}
	pieces := func(of func(*Tree) algorithms.Tensor) []algorithms.Tensor {
		list := make([]algorithms.Tensor, trees)
		for i, t := range m.trees {
			list[i] = of(t)
		}
		return list
	}
	return []algorithms.Tensor{
		{Name: "settings", Dims: []int{4}, U32: []uint32{modelFormat, uint32(trees), uint32(m.features), uint32(m.labels)}},
		sizes, ends, evaluations,
		{Name: "feature", Dims: []int{nodes}, Pieces: pieces(func(t *Tree) algorithms.Tensor { return algorithms.Tensor{U32: t.feature} })},
		{Name: "left", Dims: []int{nodes}, Pieces: pieces(func(t *Tree) algorithms.Tensor { return algorithms.Tensor{U32: t.left} })},
		{Name: "samples", Dims: []int{nodes}, Pieces: pieces(func(t *Tree) algorithms.Tensor { return algorithms.Tensor{U32: t.samples} })},
		{Name: "threshold", Dims: []int{nodes}, Pieces: pieces(func(t *Tree) algorithms.Tensor { return algorithms.Tensor{F64: t.threshold} })},
		{Name: "gain", Dims: []int{nodes}, Pieces: pieces(func(t *Tree) algorithms.Tensor { return algorithms.Tensor{F64: t.gain} })},
		{Name: "leaf", Dims: []int{leaves, m.labels}, Pieces: pieces(func(t *Tree) algorithms.Tensor { return algorithms.Tensor{F32: t.leaves} })},
	}
}

// Shape implements algorithms.Model.
func (m *model) Shape() (features, labels int) { return m.features, m.labels }
