// Package rf implements the single-label random forest that Chen et al. 2018
// compare StructRF with (section 4.4): a row's label is its class of the highest
// degree, the lowest among ties; splits lower the entropy of the labels, and a
// leaf predicts their frequencies. The trees are grown by package forest.
//
// The class of a row of targets in bounds is its highest target, scaled. The class of a single target is the half of
// the bounds that has it. A leaf predicts the mean targets of its rows.
package rf

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/forest"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Name is the word that selects the algorithm in a spec.
const Name = "rf"

// New returns the algorithm: the classes of all nodes are the labels, and the class of a row is the label
// with its highest degree.
func New() algorithms.Algorithm {
	return forest.Variant{
		Name: Name,
		About: algorithms.About{
			Class:   "RandomForest",
			Summary: "random forest of single labels",
			When:    "Use it only as the baseline of its paper: it often predicts 0 for a label with a positive probability.",
			Paper:   `Chen et al. 2018, "Structured random forest for label distribution learning"`,
		},
		Doc: "the random forest with which Chen et al. 2018 compare structrf: the class of a sample is its most " +
			"probable label",
		Auto:        forest.Sizes{Trees: 200, MinSamples: 80},
		Classes:     func(labels int) int { return max(2, labels) },
		NewLabeller: func(uint64) forest.Labeller { return new(argmaxLabeller) },
		Counted:     &forest.CountedParts{Class: argMax, Leaf: frequencies},
		OfTargets: &forest.TargetParts{
			Classes: func(labels int) int { return max(2, labels) }, RowValue: forest.Squares,
			NewLabeller: func(uint64) forest.Labeller { return new(targetLabeller) },
		},
	}.New()
}

// argmaxLabeller is the labeller of rf: a row's class is its label of the highest degree.
type argmaxLabeller struct{ counts []uint32 }

// Begin implements forest.Labeller: classes are the same in all nodes.
func (h *argmaxLabeller) Begin(s *forest.BootstrapSample) {
	forest.Resized(&h.counts, s.Width)
	for row := range s.Class {
		s.Class[row] = argMax(s.Label(uint32(row)))
	}
}

// argMax returns the lowest index of the greatest value.
func argMax(v []float32) uint32 {
	best := 0
	for i, x := range v {
		if x > v[best] {
			best = i
		}
	}
	return uint32(best)
}

// Classify implements forest.Labeller.
func (h *argmaxLabeller) Classify(s *forest.BootstrapSample, n *forest.Node) bool {
	return classesDiffer(s, n)
}

// classesDiffer reports whether the rows of a node have several classes.
func classesDiffer(s *forest.BootstrapSample, n *forest.Node) bool {
	first := s.Class[n.Rows[0]]
	for _, row := range n.Rows[1:] {
		if s.Class[row] != first {
			return true
		}
	}
	return false
}

// Leaf implements forest.Labeller.
func (h *argmaxLabeller) Leaf(dst []float32, s *forest.BootstrapSample, n *forest.Node) float64 {
	clear(h.counts)
	for _, row := range n.Rows {
		h.counts[s.Class[row]] += s.Weight[row]
	}
	return frequencies(dst, h.counts, n.Copies)
}

// frequencies sets dst to the share of each class. The loss is the K-L divergence, in nats, from the one-hot
// distributions of the rows' classes to these shares.
func frequencies(dst []float32, counts []uint32, n int) float64 {
	loss, copies := 0.0, float64(n)
	for c, count := range counts[:len(dst)] {
		share := float64(count) / copies
		dst[c] = float32(share)
		if count > 0 {
			loss -= float64(copies * float64(share*num.Log(share)))
		}
	}
	return loss
}

// targetLabeller is the labeller for targets in bounds.
type targetLabeller struct{ sum []float64 }

// Begin implements forest.Labeller: classes are the same in all nodes.
func (h *targetLabeller) Begin(s *forest.BootstrapSample) {
	forest.Resized(&h.sum, s.Width)
	for row := range s.Class {
		targets := s.Label(uint32(row))
		if s.Class[row] = argMax(targets); len(targets) == 1 && targets[0] > 0.5 {
			s.Class[row] = 1
		}
	}
}

// Classify implements forest.Labeller.
func (h *targetLabeller) Classify(s *forest.BootstrapSample, n *forest.Node) bool {
	return classesDiffer(s, n)
}

// Leaf implements forest.Labeller: the mean targets, and the sum of squared errors.
func (h *targetLabeller) Leaf(dst []float32, s *forest.BootstrapSample, n *forest.Node) float64 {
	return forest.MeanTargets(dst, h.sum, s, n)
}
