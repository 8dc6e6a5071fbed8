package ldlf

import (
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Router is implemented by models whose trees have soft splits: a sample takes both branches, with probabilities.
// Split nodes have their numbers in heap order: the children of node n are 2n+1 and 2n+2. Leaves are counted from the
// left.
type Router interface {
	// SoftTrees returns the number of trees, and the split nodes and the leaves of one tree.
	SoftTrees() (trees, splits, leaves int)
	// Route sets left (trees×splits) to the probabilities with which a sample takes the left branches. scratch is of
	// NewScratch.
	Route(left []float32, rows *dataset.Rows, pos int, scratch any)
	// SoftLeaf returns the label distribution of a leaf.
	SoftLeaf(tree, leaf int) []float32
	// UnitOf returns the output unit that a split node reads. Its weights are the weights of the scaled features and of
	// the features as samples have them; nil: the feature function is not linear.
	UnitOf(tree, split int) (unit int, scaled, raw []float64)
}

var _ Router = (*model)(nil)

// SoftTrees implements Router.
func (m *model) SoftTrees() (trees, splits, leaves int) { return m.trees, m.splits, m.leaves }

// Route implements Router.
func (m *model) Route(left []float32, rows *dataset.Rows, pos int, working any) {
	s := working.(*scratch)
	s.Batch = append(s.Batch[:0], gradient.SampleOf(rows, pos))
	m.f.Predict(s.F, s.Batch, &m.weights, s.Space)
	num.SigmoidPairs(s.s, s.t, s.F[:m.outputs])
	for i, unit := range m.phi {
		left[i] = s.s[unit]
	}
}

// SoftLeaf implements Router.
func (m *model) SoftLeaf(tree, leaf int) []float32 {
	return chunk(chunk(m.q, tree, m.treeQ()), leaf, m.labels)
}

// UnitOf implements Router.
func (m *model) UnitOf(tree, split int) (unit int, scaled, raw []float64) {
	unit = int(m.treePhi(m.phi, tree)[split])
	if _, ok := m.f.(*gradient.Linear); !ok {
		return unit, nil, nil
	}
	scaled, raw = make([]float64, m.features), make([]float64, m.features)
	for k := range scaled {
		scaled[k] = float64(m.weights.Theta[k*m.outputs+unit])
		raw[k] = scaled[k]
		if !m.weights.Input.None() {
			raw[k] = scaled[k] * m.weights.Input.Scale[k]
		}
	}
	return unit, scaled, raw
}
