package ranking

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// stateVersion is the version of the fields of a trainer's state; since 2 it has the scaling.
const stateVersion = 2

// New returns the algorithm.
func New() algorithms.Algorithm {
	return learner.Define(learner.Definition[Config]{
		Name: Name,
		About: algorithms.About{
			Class:   "Ranking",
			Summary: "kernel model that predicts a number",
			When:    "Compare it with mlp-regression for ages and other numbers, up to some thousand samples.",
			Paper:   `Yan et al. 2007, "Ranking with Uncertain Labels"`,
		},
		Doc:      "ranking with uncertain labels: a bilinear model of kernels for numeric labels (Yan et al. 2007)",
		Predicts: algorithms.Number, Settings: settings,
		Fill:         (*Config).fill,
		Fits:         func(c *Config, m *dataset.Manifest) error { return c.Scale.Fits(m, Name) },
		Trainer:      func(j *learner.Job[Config]) (learner.Trainer, error) { return newTrainer(j), nil },
		StateVersion: stateVersion,
		Kernel:       func(j *learner.Job[Config]) (round.Kernel, error) { return newKernel(j), nil },
		Model: func(tensors []algorithms.Tensor) (algorithms.Model, error) {
			m := new(model)
			return m, learner.ReadTensors(tensors, m.tensors)
		},
		Memory: memory,
	})
}
