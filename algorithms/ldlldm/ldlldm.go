// Package ldlldm is LDL-LDM of Wang and Geng 2021: the maximum-entropy model of package maxent,
// whose loss gains two terms that keep its predictions on the manifold of label distributions.
//
// Σ over rows of K-L(d, p) + ½·l1·‖W‖² + l2·‖P(I - Z⁰)‖² + l3·Σ_g ‖P_g(I - Z^g)‖² is minimised, where P has
// a row for each prediction, P_g those of cluster g of the rows by k-means on the labels, and Z rebuilds each
// label's column of D, or of D_g, from the other columns. A row of cluster g so gains pᵀ·M_g·p with
// M_g = l2·(I - Z⁰)(I - Z⁰)ᵀ + l3·(I - Z^g)(I - Z^g)ᵀ.
//
// The weight of a sample is a factor of all its terms, and of its products of labels in K-means and Z. A sample of
// weight 0 is no first centre.
//
// Three kinds of rounds come before the fit: one that draws the first centres, k-means, and one that
// sums the products of labels from which each Z follows.
package ldlldm

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// stateVersion is the version of a trainer's state.
const stateVersion = 3

// New returns the algorithm.
func New() algorithms.Algorithm {
	return learner.Define(learner.Definition[Config]{
		Name: Name,
		About: algorithms.About{
			Class:   "LDLLDM",
			Summary: "maximum-entropy model on a manifold",
			When:    "Use it to compare with its paper; sa-bfgs is as accurate on most data and takes less time.",
			Paper:   `Wang and Geng 2021, "Label Distribution Learning by Exploiting Label Distribution Manifold"`,
		},
		Doc: "LDL-LDM of Wang and Geng 2021: a maximum-entropy model whose predictions are kept near the manifold " +
			"of label distributions",
		Predicts:     algorithms.Distribution,
		Settings:     settings,
		Fill:         (*Config).fill,
		Check:        func(c *Config) error { return c.Check(&c.Search) },
		Fits:         fits,
		Validation:   func(c *Config) (share float64, least int) { return c.Validation() },
		Trainer:      func(j *learner.Job[Config]) (learner.Trainer, error) { return newTrainer(j), nil },
		StateVersion: stateVersion,
		Kernel:       func(j *learner.Job[Config]) (round.Kernel, error) { return newKernel(j), nil },
		Model:        maxent.Decode,
		Memory:       memory,
	})
}

// memory estimates the memory of a job's trainer: the state also has centres and a matrix for each
// cluster. There are copies of them while they are computed.
func memory(c *Config, m *dataset.Manifest) algorithms.Footprint {
	f := c.Memory(1, m)
	clusters, labels := int64(c.Clusters), int64(m.Labels)
	f.State += 8*clusters*labels*(1+labels) + 8*4*labels*labels + 64
	f.State += int64(len(m.Shards)) * clusters * int64(entryBytes(m.Labels))
	f.Node = max(f.Node, 8*(clusters+1)*labels*labels, 8*clusters*(labels+1))
	return f
}
