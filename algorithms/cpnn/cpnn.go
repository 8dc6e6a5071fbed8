package cpnn

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/fullbatch"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/rprop"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// New returns the algorithm.
func New() algorithms.Algorithm {
	return learner.Define(learner.Definition[Config]{
		Name: Name,
		About: algorithms.About{
			Class:   "CPNN",
			Summary: "network whose inputs are a sample and a label",
			When:    "Use it to compare with its paper; ldlf predicts better on most data.",
			Paper:   `Geng, Yin and Zhou 2013, "Facial Age Estimation by Learning from Label Distributions"`,
		},
		Doc:      "the conditional probability neural network of Geng et al. 2013: its inputs are a sample and a label, and Rprop fits it on all training samples",
		Predicts: algorithms.Distribution,
		Settings: settings,
		Fill:     (*Config).fill,
		Fits:     checkSize,
		Validation: func(c *Config) (share float64, least int) {
			return c.ValidationFraction, validationMin
		},
		Trainer: func(j *learner.Job[Config]) (learner.Trainer, error) {
			return newTrainer(j.Config, j.Seed, j.Manifest), nil
		},
		StateVersion: 2,
		Kernel: func(j *learner.Job[Config]) (round.Kernel, error) {
			return &kernel{sizesOf(j.Config, j.Manifest)}, nil
		},
		Model:  decodeModel,
		Memory: memory,
	})
}

// memory estimates the memory of a trainer.
func memory(c *Config, m *dataset.Manifest) algorithms.Footprint {
	z, set := sizesOf(c, m), trainingSettings(c)
	n := z.values()
	f := fullbatch.Memory(&set, n, rprop.Bytes(n), n, m)
	f.Model = 8*int64(n) + 4*modelSettings
	return f
}
