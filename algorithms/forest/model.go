package forest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
)

// modelFormat is the version of the tensors below.
const modelFormat = 1

// ErrModel is wrapped by every error about the tensors of a model.
var ErrModel = errors.New("forest: not a forest's tensors")

// model is a trained forest; see algorithms.Model. Its arrays are those of its
// trees, one after the other; children and leaves are numbered within their tree.
type model struct {
	features, labels int
	all              Tree     // every array of the trees, concatenated
	nodes, leaves    []uint32 // of each tree
	evaluations      []float64
	walker
}

// newModel joins trees into a forest.
func newModel(trees []*Tree, features, labels int) (*model, error) {
	m := &model{features: features, labels: labels, all: Tree{Labels: labels}}
	for _, t := range trees {
		m.nodes = append(m.nodes, uint32(t.Nodes()))
		m.leaves = append(m.leaves, uint32(t.Leaves()))
		m.evaluations = append(m.evaluations, float64(t.Evaluations))
		m.all.feature = append(m.all.feature, t.feature...)
		m.all.left = append(m.all.left, t.left...)
		m.all.samples = append(m.all.samples, t.samples...)
		m.all.threshold = append(m.all.threshold, t.threshold...)
		m.all.gain = append(m.all.gain, t.gain...)
		m.all.leaves = append(m.all.leaves, t.leaves...)
	}
	m.walker.build(m)
	return m, nil
}

// tree returns one tree as a view of the model's arrays.
func (m *model) tree(i int) *Tree {
	var node, leaf int
	for j := range i {
		node, leaf = node+int(m.nodes[j]), leaf+int(m.leaves[j])
	}
	nodes, leaves := node+int(m.nodes[i]), leaf+int(m.leaves[i])
	return &Tree{
		Labels: m.labels, Evaluations: uint64(m.evaluations[i]),
		feature: m.all.feature[node:nodes], left: m.all.left[node:nodes], samples: m.all.samples[node:nodes],
		threshold: m.all.threshold[node:nodes], gain: m.all.gain[node:nodes],
		leaves: m.all.leaves[leaf*m.labels : leaves*m.labels],
	}
}

// Tensors implements algorithms.Model: FORMAT.md describes them.
func (m *model) Tensors() []algorithms.Tensor {
	trees, nodes, leaves := len(m.nodes), len(m.all.feature), m.all.Leaves()
	return []algorithms.Tensor{
		{Name: "settings", Dims: []int{4}, U32: []uint32{modelFormat, uint32(trees), uint32(m.features), uint32(m.labels)}},
		{Name: "nodes", Dims: []int{trees}, U32: m.nodes},
		{Name: "leaves", Dims: []int{trees}, U32: m.leaves},
		{Name: "gain_evaluations", Dims: []int{trees}, F64: m.evaluations},
		{Name: "feature", Dims: []int{nodes}, U32: m.all.feature},
		{Name: "left", Dims: []int{nodes}, U32: m.all.left},
		{Name: "samples", Dims: []int{nodes}, U32: m.all.samples},
		{Name: "threshold", Dims: []int{nodes}, F64: m.all.threshold},
		{Name: "gain", Dims: []int{nodes}, F64: m.all.gain},
		{Name: "leaf", Dims: []int{leaves, m.labels}, F32: m.all.leaves},
	}
}

// Shape implements algorithms.Model.
func (m *model) Shape() (features, labels int) { return m.features, m.labels }

// decodeModel rebuilds a forest from its tensors. Its memory is bounded by theirs,
// and every walk through a tree ends. Errors wrap ErrModel.
func decodeModel(tensors []algorithms.Tensor) (*model, error) {
	m, err := modelOf(tensors)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModel, err)
	}
	m.walker.build(m)
	return m, nil
}

func modelOf(tensors []algorithms.Tensor) (*model, error) {
	if len(tensors) != 10 {
		return nil, fmt.Errorf("%d tensors where 10 belong", len(tensors))
	}
	head := &tensors[0]
	if head.Name != "settings" || len(head.U32) != 4 {
		return nil, fmt.Errorf("the first tensor is %q with %d numbers", head.Name, len(head.U32))
	}
	if head.U32[0] != modelFormat {
		return nil, fmt.Errorf("format %d of forests; this program reads %d", head.U32[0], modelFormat)
	}
	m := &model{features: int(head.U32[2]), labels: int(head.U32[3])}
	m.nodes, m.leaves, m.evaluations = tensors[1].U32, tensors[2].U32, tensors[3].F64
	m.all = Tree{
		Labels: m.labels, feature: tensors[4].U32, left: tensors[5].U32, samples: tensors[6].U32,
		threshold: tensors[7].F64, gain: tensors[8].F64, leaves: tensors[9].F32,
	}
	if m.labels < 1 || m.labels > dataset.MaxLabels || m.features < 1 || m.features > dataset.MaxFeatures ||
		head.U32[1] < 1 || int(head.U32[1]) != len(m.nodes) {
		return nil, fmt.Errorf("settings %v for %d trees", head.U32, len(m.nodes))
	}
	for i, want := range m.Tensors() {
		if err := sameShape(&tensors[i], &want); err != nil {
			return nil, err
		}
	}
	return m, m.check()
}

// sameShape reports a tensor that is not what the arrays that were taken from it
// would be written as.
func sameShape(have, want *algorithms.Tensor) error {
	n := 1
	for _, d := range want.Dims {
		n *= d
	}
	if have.Name != want.Name || !slices.Equal(have.Dims, want.Dims) ||
		len(have.F32)+len(have.F64)+len(have.U32) != n || len(want.F32)+len(want.F64)+len(want.U32) != n {
		return fmt.Errorf("tensor %q %v where %q %v belongs", have.Name, have.Dims, want.Name, want.Dims)
	}
	return nil
}

// check holds every tree against Tree.check, and their sizes against the arrays.
func (m *model) check() error {
	if len(m.leaves) != len(m.nodes) || len(m.evaluations) != len(m.nodes) {
		return fmt.Errorf("sizes of %d trees, leaves of %d, evaluations of %d", len(m.nodes), len(m.leaves), len(m.evaluations))
	}
	nodes, leaves := uint64(0), uint64(0)
	for i := range m.nodes {
		if m.nodes[i] < 1 || uint64(m.leaves[i]) != (uint64(m.nodes[i])+1)/2 {
			return fmt.Errorf("tree %d has %d nodes and %d leaves", i, m.nodes[i], m.leaves[i])
		}
		if e := m.evaluations[i]; !(e >= 0 && e <= 1<<53) {
			return fmt.Errorf("tree %d has %v gain evaluations", i, e)
		}
		nodes, leaves = nodes+uint64(m.nodes[i]), leaves+uint64(m.leaves[i])
	}
	if nodes != uint64(len(m.all.feature)) || leaves*uint64(m.labels) != uint64(len(m.all.leaves)) {
		return fmt.Errorf("%d nodes and %d leaves in trees, %d and %d in arrays", nodes, leaves, len(m.all.feature), m.all.Leaves())
	}
	for i := range m.nodes {
		if err := m.tree(i).check(m.features); err != nil {
			return fmt.Errorf("tree %d: %w", i, err)
		}
	}
	return nil
}
