package cpnn

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/engine/round"
)

// Name is the word that selects the algorithm in a spec.
const Name = "cpnn"

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
