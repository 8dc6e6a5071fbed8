// Package structrf implements the structured random forest of Chen et al. 2018
// ("Structured random forest for label distribution learning"): at each node the
// label distributions are clustered into two groups, the split lowers the entropy
// of the groups (Eqs. 1 to 3), and a leaf predicts the mean distribution of its
// rows. The trees are grown by package forest.
//
// Targets in bounds are clustered in the same way, scaled to [0, 1]; a leaf predicts the mean targets of its rows.
package structrf

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/forest"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Name is the word that selects the algorithm in a spec.
const Name = "structrf"

// New returns the algorithm: the two classes of a node are the clusters that two-means makes of
// its rows' label distributions.
func New() algorithms.Algorithm {
	return forest.Variant{
		Name: Name,
		About: algorithms.About{
			Class:   "StructRF",
			Summary: "random forest on label distributions",
			When:    "Use it for a result within seconds, or if the features say little about the labels.",
			Paper:   `Chen et al. 2018, "Structured random forest for label distribution learning"`,
		},
		Doc: "the structured random forest of Chen et al. 2018: at each node, two-means clusters the label distributions " +
			"into " +
			"two classes, and the node takes the split with the greatest information gain about these classes",
		Auto:     forest.Sizes{Trees: 200, MinSamples: 5},
		Classes:  func(int) int { return 2 },
		RowValue: negativeEntropy,
		NewLabeller: func(seed uint64) forest.Labeller {
			return &twoMeans{key: num.NewKey(seed, "structrf/two-means")}
		},
		OfTargets: &forest.TargetParts{
			Classes: func(int) int { return 2 }, RowValue: forest.Squares,
			NewLabeller: func(seed uint64) forest.Labeller {
				return &twoMeans{key: num.NewKey(seed, "structrf/two-means"), targets: true}
			},
		},
	}.New()
}
