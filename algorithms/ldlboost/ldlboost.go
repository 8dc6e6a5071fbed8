// Package ldlboost is LDLBoost, gradient boosting of trees with vector leaves on label distributions, of data that no
// worker needs to hold: one tree uses all workers. The gain and the leaves are of GBDT-MO (Zhang and Jung 2021), with
// the K-L divergence as loss; the bound of the second derivatives is Böhning's (1992).
//
// With C labels, F is a row's C numbers and p = softmax(F), as in package boost, which also has the model. A tree is
// fitted to g = p - d, and to h = p(1 - p) with hessian diagonal, or to 1/2 with hessian bound: the Hessian of the
// softmax is at most (I - 11ᵀ/C)/2. With G and H the sums over a node's rows, its score is Σ_c G_c²/(H_c + l2). A
// split gains half of what both sides' scores have more than the node's, less min_gain. A leaf is -G_c/(H_c + l2).
//
// Values of a column are put into bins once, evenly by the training rows. A round (histogram) sums g, h and the number
// of rows of each bin of some nodes over all shards. The trainer finds the best splits. It asks for the smaller child
// of a split node only: the other child is the node less the smaller one.
//
// Derivatives are whole multiples of a power of two, so all sums are exact: no result depends on the number of tasks,
// workers, lanes or shards, nor on dense or sparse storage. Equal splits have equal gains, and the one with the lowest
// feature, then the lowest bin, is taken. Bins that are empty in a node are no thresholds. A constant column has none.
//
// A kernel keeps what it computed of a task's rows: their bins, sums of leaves, derivatives and nodes. Another kernel
// makes all of it again from the variables of a round, and gets the same bits.
package ldlboost

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/boost"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// Name is the word that selects the algorithm in a spec.
const Name = "ldlboost"

// New returns the algorithm.
func New() algorithms.Algorithm {
	return learner.Define(learner.Definition[Config]{
		Name: Name,
		Doc: "LDLBoost: label distributions are the softmax of sums of trees. Each boosting round adds one tree for " +
			"all labels. Its splits follow from histograms that all workers sum",
		About: algorithms.About{
			Class:   "LDLBoost",
			Summary: "boosted trees from histograms, one for all labels",
			When:    "Use it for many samples, or if no worker can hold the dataset: all workers grow one tree together.",
			Paper:   `Zhang and Jung 2021, "GBDT-MO: Gradient-boosted decision trees for multiple outputs"`,
		},
		Incomplete: true,
		Predicts:   algorithms.Distribution,
		Settings:   settings,
		Fill:       (*Config).fill,
		Check:      (*Config).check,
		Fits:       (*Config).fits,
		Validation: func(c *Config) (share float64, least int) { return c.ValidationFraction, validationMin },
		Trainer: func(j *learner.Job[Config]) (learner.Trainer, error) {
			return newTrainer(j.Config, j.Manifest, j.Seed, j.Incomplete()), nil
		},
		StateVersion: stateFormat,
		Kernel: func(j *learner.Job[Config]) (round.Kernel, error) {
			return newKernel(j.Config, j.Manifest, j.Seed, j.Incomplete(), j.Config.demand(j.Manifest)), nil
		},
		Model:  boost.DecodeVectorModel,
		Memory: func(c *Config, m *dataset.Manifest) algorithms.Footprint { return memory(c, m) },
	})
}
