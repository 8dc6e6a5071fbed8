// Package aabp implements AA-BP (Geng 2016, "Label Distribution Learning"): a network of one
// hidden layer and a softmax, p = softmax(f(x; Θ)), trained by back-propagation in mini-batches.
//
// The paper's network has the squared error as its loss, ½ Σ_c (p_c - d_c)²; public
// implementations have the K-L divergence Σ_c d_c ln(d_c / p_c). Both are here.
//
// Targets in bounds, scaled to t in [0, 1], have a logistic output each in place of the softmax:
// p_c = 1/(1 + exp(-f_c)). Their K-L divergence is between the two degrees t_c, 1 - t_c and the two
// degrees p_c, 1 - p_c, summed over targets: fractional logistic regression (Papke and Wooldridge
// 1996). Validation has the squared error.
package aabp

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
			Class:   "AABP",
			Summary: "network with one hidden layer",
			When:    "Use it to compare with its paper; dldl predicts better on most data.",
			Paper:   `Geng 2016, "Label Distribution Learning"`,
		},
		Doc:      "the network AA-BP of Geng 2016 has one hidden layer and a softmax, and is trained by back-propagation",
		Predicts: algorithms.Distribution,
		Targets:  true,
		Settings: settings,
		Fill:     (*Config).fill,
		Check:    (*Config).check,
		Fits:     checkSize,
		Validation: func(c *Config) (share float64, least int) {
			return c.ValidationFraction, validationMin
		},
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
	set := descentSettings(c)
	n := newFunction(c, 0, m)
	f := gradient.Memory(&set, n, m, 0)
	f.Model += 4 * modelSettings
	f.Weights = c.Initial.Memory(n)
	return f
}
