// Package saiis is the algorithm SA-IIS of Geng 2016 (IIS-LLD): the maximum-entropy model of package
// maxent, fitted by improved iterative scaling.
//
// With x#_i = Σ_k |x_ik|, an iteration adds to each weight w_kc the root δ_kc of
//
//	h(δ) = Σ_i p_ic x_ik exp(δ sgn(x_ik) x#_i) - Σ_i d_ic x_ik
//
// which increases with δ. Each δ_kc is where its own term of a lower bound of the fall of the loss
// is greatest. These terms are concave, and 0 at δ = 0: a change between 0 and the root lowers the
// loss too. So a root that is not found in time is replaced by the nearest end to 0 of the interval
// that is known to have it, and the loss never rises.
//
// The search for the roots of all weights is one state machine: a round sums, for every weight and
// its present δ, both parts of h (rows with x_ik above and below 0) and h'. The first round of an
// iteration has δ = 0 and tells the loss too; it also ends the iteration before.
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
