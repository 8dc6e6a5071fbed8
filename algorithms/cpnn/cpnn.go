// Package cpnn implements the conditional probability neural network of Geng, Yin and Zhou 2013
// ("Facial Age Estimation by Learning from Label Distributions"): a network reads a row x and a
// label y and gives one output; with logistic hidden units h(x, y),
//
//	p(y|x) = exp(w₂·h(x, y)) / Σ_y' exp(w₂·h(x, y'))
//
// A label is given by its number, scaled to 0 to 1, which needs labels in an order, or as one-hot
// (1 in the label's place, 0 in the others). What is minimised is the mean K-L divergence over all training
// rows, by Rprop, in float64.
//
// The hidden sums are W₁x + V_y + b₁. W₁x is computed once for a row and shared by its labels.
//
// The package does not use the layers of algorithms/kit/network, for three reasons. An output there is a function of a
// row; here one network is evaluated for each label of a row, and a dense layer that reads x and y would compute W₁x as
// often as there are labels. Rprop steps by the signs of the gradient over all rows, in float64; weights and sums there
// are float32, whose roundings decide signs once a gradient is nearly 0. And a job here is full batches of
// fullbatch.Training with its own state, not a gradient.Descent. What is the same is a logistic function and a product
// of matrices, which are in internal/num and algorithms/kit/blocks already.
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
		Doc: "the conditional probability neural network of Geng et al. 2013: its inputs are a sample and a label, " +
			"and Rprop fits it on all training samples",
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
		Model:  learner.Decoder((*model).tensors),
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
