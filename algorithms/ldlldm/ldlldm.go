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
		Doc:          "LDL-LDM of Wang and Geng 2021: a maximum-entropy model whose predictions are kept near the manifold of label distributions",
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
