package boost

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// New returns the algorithm.
func (v Variant) New() algorithms.Algorithm {
	return learner.Define(learner.Definition[Config]{
		Name:       v.Name,
		Doc:        v.Doc,
		About:      v.About,
		Predicts:   algorithms.Distribution,
		Settings:   newSettings(&v),
		Fill:       (*Config).fill,
		Check:      (*Config).check,
		Fits:       (*Config).fits,
		Validation: func(c *Config) (share float64, least int) { return c.ValidationFraction, validationMin },
		Trainer: func(j *learner.Job[Config]) (learner.Trainer, error) {
			return newTrainer(&v, j.Config, j.Manifest), nil
		},
		StateVersion: stateFormat,
		Kernel: func(j *learner.Job[Config]) (round.Kernel, error) {
			return newKernel(&v, j.Config, j.Manifest), nil
		},
		Model:  func(tensors []algorithms.Tensor) (algorithms.Model, error) { return decodeModel(&v, tensors) },
		Memory: func(c *Config, m *dataset.Manifest) algorithms.Footprint { return memory(&v, c, m) },
	})
}
