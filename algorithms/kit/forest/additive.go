package forest

import "errors"

// Additive describes a model that adds up the leaves of trees. Let s_c be the sum of what the reached leaves have for
// label c, and m the mean of s over the labels if Centred, and otherwise 0. The output of label c is
// Start_c + Factor·(s_c - m).
type Additive struct {
	Features, Labels int
	Trees            []*Tree
	Start            []float64 // by label
	Factor           float64
	Centred          bool
	// Scores is true if the prediction is the softmax of the outputs. If it is false, the outputs are the prediction.
	Scores bool
	// Sums is true if the gain of a split is a sum over its samples. If it is false, the gain is a mean.
	Sums bool
}

// Adds is implemented by models that add up the leaves of trees.
type Adds interface{ Additive() *Additive }

var _ Adds = (*model)(nil)

// Additive implements Adds. The output is the mean of the leaves.
func (m *model) Additive() *Additive {
	a := m.Added()
	a.Factor = 1 / float64(len(m.trees))
	return a
}

// Added describes the sum of the leaves, with the factor 1.
func (m *Ensemble) Added() *Additive {
	return &Additive{Features: m.features, Labels: m.labels, Trees: m.trees, Start: make([]float64, m.labels),
		Factor: 1}
}

// Label returns the label that a tree is about. If the leaves have a number for each label, all is true.
func (a *Additive) Label(tree int) (label int, all bool) {
	if a.Trees[tree].Labels == a.Labels {
		return 0, true
	}
	return tree % a.Labels, false
}

// Outputs replaces the sums of leaves of a sample, or of some of its leaves, by outputs. If start is false, the outputs
// lack Start: they are what the leaves add.
func (a *Additive) Outputs(sums []float64, start bool) {
	mean := 0.0
	if a.Centred {
		for _, s := range sums {
			mean += s
		}
		mean /= float64(len(sums))
	}
	for c, s := range sums {
		sums[c] = float64(a.Factor * (s - mean))
		if start {
			sums[c] += a.Start[c]
		}
	}
}

// ErrCovers says that the numbers of samples of a tree's nodes do not add up.
var ErrCovers = errors.New("the numbers of samples do not add up: a node and its children must have equally many")

// CheckCovers returns ErrCovers unless each node of each tree has samples, and a split node as many as its children. A
// tree of one leaf may have none: all samples that it could have drawn stayed away.
func (a *Additive) CheckCovers() error {
	for _, t := range a.Trees {
		for i, feature := range t.feature {
			if t.samples[i] == 0 && t.Nodes() > 1 {
				return ErrCovers
			}
			if feature == leafMark {
				continue
			}
			if uint64(t.samples[i]) != uint64(t.samples[t.left[i]])+uint64(t.samples[t.left[i]+1]) {
				return ErrCovers
			}
		}
	}
	return nil
}

// Threshold returns the threshold of a split node: samples with a value below it go left.
func (t *Tree) Threshold(node int) float64 { return t.threshold[node] }

// Gain returns the gain of a split node.
func (t *Tree) Gain(node int) float64 { return t.gain[node] }
