package forest

import (
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/learner"
	"github.com/coppice-ldl/coppice/dataset"
)

// modelFormat is the version of the tensors; FORMAT.md describes them.
const modelFormat = 1

// maxTrees bounds the trees of a model, as its settings tensor holds their number.
const maxTrees = 1<<32 - 1

// arrays are the tensors of a model file: the arrays of all trees, one after the other.
type arrays struct {
	count            int // of trees
	features, labels int
	nodes, leaves    []uint32 // of each tree
	evaluations      []float64
	all              Tree
}

// tensors lists the tensors.
func (a *arrays) tensors(l *learner.Tensors) {
	l.Settings(modelFormat, learner.Within(&a.count, 1, maxTrees), learner.Within(&a.features, 1, dataset.MaxFeatures),
		learner.Within(&a.labels, 1, dataset.MaxLabels))
	l.U32("nodes", &a.nodes, a.count)
	l.U32("leaves", &a.leaves, a.count)
	l.F64("gain_evaluations", &a.evaluations, a.count)
	if l.Reading() {
		a.check(l)
	}
	nodes, leaves := 0, 0
	for i := range a.leaves {
		nodes, leaves = nodes+int(a.nodes[i]), leaves+int(a.leaves[i])
	}
	l.U32("feature", &a.all.feature, nodes)
	l.U32("left", &a.all.left, nodes)
	l.U32("samples", &a.all.samples, nodes)
	l.F64("threshold", &a.all.threshold, nodes)
	l.F64("gain", &a.all.gain, nodes)
	l.F32("leaf", &a.all.leaves, leaves, a.labels)
}

// check refuses sizes and counts that no tree has.
func (a *arrays) check(l *learner.Tensors) {
	for i := range a.nodes {
		l.Check(a.nodes[i] >= 1 && uint64(a.leaves[i]) == (uint64(a.nodes[i])+1)/2, "tree %d has %d nodes and %d leaves", i, a.nodes[i], a.leaves[i])
		e := a.evaluations[i]
		l.Check(e >= 0 && e <= 1<<53 && e == float64(uint64(e)), "tree %d has %v gain evaluations", i, e)
	}
}

// decodeModel makes a forest from its tensors, whose memory the trees share.
func decodeModel(tensors []algorithms.Tensor) (*model, error) {
	var a arrays
	if err := learner.ReadTensors(tensors, a.tensors); err != nil {
		return nil, err
	}
	trees := a.trees()
	for i, t := range trees {
		if err := t.check(a.features); err != nil {
			return nil, fmt.Errorf("tree %d: %w", i, err)
		}
	}
	return newModel(trees, a.features, a.labels), nil
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
