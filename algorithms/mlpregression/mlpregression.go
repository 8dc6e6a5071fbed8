// Package mlpregression implements the multi-layer perceptron with which Yan et al. 2007 ("Ranking
// with Uncertain Labels") compare their models: a network of one hidden layer of rectifiers and
// one linear output, which predicts the number of a row on the scale of the labels.
//
// The target is standardised by the training rows. What is minimised is half the squared error,
// in means over mini-batches, and α ‖W‖²/(2 N) of the weights, with N the rows of a mini-batch.
// Training ends after so many passes through the training rows, or once that loss has not fallen
// enough for some of them.
package mlpregression

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// New returns the algorithm.
func New() algorithms.Algorithm {
	return learner.Define(learner.Definition[Config]{
		Name: Name,
		About: algorithms.About{
			Class:   "MLPRegression",
			Summary: "perceptron that predicts a number",
			When:    "Use it for ages and other numbers, if only the number counts.",
			Paper:   `Yan et al. 2007, "Ranking with Uncertain Labels"`,
		},
		Doc:          "a perceptron of one hidden layer that predicts a number, the numeric label of a sample",
		Predicts:     algorithms.Number,
		Settings:     settings,
		Fill:         (*Config).fill,
		Check:        func(c *Config) error { return c.Initial.Check() },
		Fits:         (*Config).fits,
		Weights:      func(c *Config) string { return c.Initial.Digest() },
		FitsWeights:  fitsWeights,
		Trainer:      beginTrainer,
		StateVersion: 1,
		Kernel: func(j *learner.Job[Config]) (round.Kernel, error) {
			return newKernel(j.Config, j.Seed, j.Manifest), nil
		},
		Model:  learner.Decoder((*model).tensors),
		Memory: memory,
	})
}

// memory estimates the memory of a trainer.
func memory(c *Config, m *dataset.Manifest) algorithms.Footprint {
	set := descentSettings(c, 1)
	n := newFunction(c, 0, m)
	f := gradient.Memory(&set, n, m, 0)
	f.Model += modelNumbers
	f.Weights = c.Initial.Memory(n)
	return f
}
