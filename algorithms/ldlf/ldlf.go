package ldlf

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/engine/round"
)

// Name is the word that selects the algorithm in a spec.
const Name = "ldlf"

// New returns the algorithm.
func New() algorithms.Algorithm {
	return learner.Define(learner.Definition[Config]{
		Name: Name,
		About: algorithms.About{
			Class:   "LDLForest",
			Summary: "forest of differentiable decision trees",
			When:    "Start with it if you want one good model and know little about the data.",
			Paper:   `Shen et al. 2017, "Label Distribution Learning Forests"`,
		},
		Doc:      "the label distribution learning forests of Shen et al. 2017: differentiable trees whose splits are computed by a linear function or a network",
		Predicts: algorithms.Distribution,
		Settings: settings,
		Fill:     (*Config).fill,
		Check:    (*Config).check,
		Fits:     checkSize,
		Validation: func(c *Config) (share float64, least int) {
			return c.ValidationFraction, validationMin
		},
		Weights:      func(c *Config) string { return c.Network.Initial.Digest() },
		FitsWeights:  fitsWeights,
		Trainer:      newTrainer,
		StateVersion: stateFormat,
		Kernel: func(j *learner.Job[Config]) (round.Kernel, error) {
			return newKernel(j.Config, j.Seed, j.Manifest), nil
		},
		Model:  decodeModel,
		Memory: memory,
	})
}
