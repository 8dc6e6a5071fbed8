package forest

import (
	"fmt"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
)

// arrays are the tensors of a model file: the arrays of all trees, one after the other.
type arrays struct {
	features, labels int
	nodes, leaves    []uint32 // of each tree
	evaluations      []float64
	all              Tree
}

// decodeModel makes a forest from its tensors, whose memory the trees share. Errors wrap
// ErrModel.
func decodeModel(tensors []algorithms.Tensor) (*model, error) {
	a, err := arraysOf(tensors)
	if err == nil {
		err = a.check()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModel, err)
	}
	trees := a.trees()
	for i, t := range trees {
		if err := t.check(a.features); err != nil {
			return nil, fmt.Errorf("%w: tree %d: %w", ErrModel, i, err)
		}
	}
	return newModel(trees, a.features, a.labels), nil
}

func arraysOf(tensors []algorithms.Tensor) (*arrays, error) {
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
	a := &arrays{features: int(head.U32[2]), labels: int(head.U32[3])}
	a.nodes, a.leaves, a.evaluations = tensors[1].U32, tensors[2].U32, tensors[3].F64
	a.all = Tree{
		Labels: a.labels, feature: tensors[4].U32, left: tensors[5].U32, samples: tensors[6].U32,
		threshold: tensors[7].F64, gain: tensors[8].F64, leaves: tensors[9].F32,
	}
	if a.labels < 1 || a.labels > dataset.MaxLabels || a.features < 1 || a.features > dataset.MaxFeatures ||
		head.U32[1] < 1 || int(head.U32[1]) != len(a.nodes) {
		return nil, fmt.Errorf("settings %v for %d trees", head.U32, len(a.nodes))
	}
	return a, a.checkShapes(tensors)
}

// checkShapes reports a tensor of another name, type or shape than the format has.
func (a *arrays) checkShapes(tensors []algorithms.Tensor) error {
	trees, nodes := len(a.nodes), a.all.Nodes()
	for i, want := range []struct {
		name string
		have int // values of the right type
		dims []int
	}{
		{"settings", 4, []int{4}},
		{"nodes", trees, []int{trees}},
		{"leaves", len(a.leaves), []int{trees}},
		{"gain_evaluations", len(a.evaluations), []int{trees}},
		{"feature", nodes, []int{nodes}},
		{"left", len(a.all.left), []int{nodes}},
		{"samples", len(a.all.samples), []int{nodes}},
		{"threshold", len(a.all.threshold), []int{nodes}},
		{"gain", len(a.all.gain), []int{nodes}},
		{"leaf", len(a.all.leaves), []int{a.all.Leaves(), a.labels}},
	} {
		n, t := 1, &tensors[i]
		for _, d := range want.dims {
			n *= d
		}
		if t.Name != want.name || !slices.Equal(t.Dims, want.dims) || want.have != n || len(t.F32)+len(t.F64)+len(t.U32) != n {
			return fmt.Errorf("tensor %q %v where %q %v belongs", t.Name, t.Dims, want.name, want.dims)
		}
	}
	return nil
}

// check compares the sizes of the trees with the arrays.
func (a *arrays) check() error {
	nodes, leaves := uint64(0), uint64(0)
	for i := range a.nodes {
		if a.nodes[i] < 1 || uint64(a.leaves[i]) != (uint64(a.nodes[i])+1)/2 {
			return fmt.Errorf("tree %d has %d nodes and %d leaves", i, a.nodes[i], a.leaves[i])
		}
		if e := a.evaluations[i]; !(e >= 0 && e <= 1<<53) || e != float64(uint64(e)) {
			return fmt.Errorf("tree %d has %v gain evaluations", i, e)
		}
		nodes, leaves = nodes+uint64(a.nodes[i]), leaves+uint64(a.leaves[i])
	}
	if nodes != uint64(a.all.Nodes()) || leaves*uint64(a.labels) != uint64(len(a.all.leaves)) {
		return fmt.Errorf("%d nodes and %d leaves in trees, %d and %d in arrays", nodes, leaves, a.all.Nodes(), a.all.Leaves())
	}
	return nil
}

// trees cuts checked arrays into trees.
func (a *arrays) trees() []*Tree {
	list := make([]*Tree, len(a.nodes))
	node, leaf := 0, 0
	for i := range list {
		nodes, leaves := node+int(a.nodes[i]), leaf+int(a.leaves[i])
		list[i] = &Tree{
			Labels: a.labels, Evaluations: uint64(a.evaluations[i]),
			feature: a.all.feature[node:nodes], left: a.all.left[node:nodes], samples: a.all.samples[node:nodes],
			threshold: a.all.threshold[node:nodes], gain: a.all.gain[node:nodes],
			leaves: a.all.leaves[leaf*a.labels : leaves*a.labels],
		}
		node, leaf = nodes, leaves
	}
	return list
}
