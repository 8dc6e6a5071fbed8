package saiis

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// stateVersion is the version of a trainer's state.
const stateVersion = 2

// New returns the algorithm.
func New() algorithms.Algorithm {
	return learner.Define(learner.Definition[Config]{
		Name: Name,
		About: algorithms.About{
			Class:   "SAIIS",
			Summary: "maximum-entropy model, by iterative scaling",
			When:    "Use it to compare with its paper; sa-bfgs fits the same kind of model in less time.",
			Paper:   `Geng 2016, "Label Distribution Learning"`,
		},
		Doc:      "the maximum-entropy model of Geng 2016, fitted by improved iterative scaling on all training samples",
		Predicts: algorithms.Distribution,
		Settings: settings,
		Fill:     (*Config).fill,
		Fits: func(_ *Config, m *dataset.Manifest) error {
			_, err := maxent.Size(m)
			return err
		},
		Validation:   func(c *Config) (share float64, least int) { return c.Validation() },
		Trainer:      func(j *learner.Job[Config]) (learner.Trainer, error) { return newTrainer(j.Config, j.Manifest), nil },
		StateVersion: stateVersion,
		Kernel:       func(j *learner.Job[Config]) (round.Kernel, error) { return newKernel(j.Config, j.Manifest), nil },
		Model:        maxent.Decode,
		Memory:       memory,
	})
}

// memory estimates the memory of a job's trainer.
func memory(c *Config, m *dataset.Manifest) algorithms.Footprint {
	z := sizesOf(c, m)
	return c.MemoryOf(minimiserBytes(z.values())+z.knownBytes(), max(z.sums(), z.knownSums()), m)
}
