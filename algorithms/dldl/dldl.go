// Package dldl implements DLDL (Gao et al. 2017, "Deep Label Distribution Learning With Label
// Ambiguity"): a network whose outputs' softmax is the label distribution, trained by the K-L divergence in
// mini-batches. It has the networks of package network, which LDLF may stand on too, so that the two
// differ in what follows the network: a softmax here, a forest there.
//
// If labels are on a scale, the paper predicts the expected value. Measures show the expected value and the mode.
package dldl

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/network"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// New returns the algorithm.
func New() algorithms.Algorithm {
	return learner.Define(learner.Definition[Config]{
		Name: Name,
		About: algorithms.About{
			Class:   "DLDL",
			Summary: "neural network with a softmax",
			When:    "Use it for classes, for images with features=conv, and for fewer than 500 samples.",
			Paper:   `Gao et al. 2017, "Deep Label Distribution Learning With Label Ambiguity"`,
		},
		Doc: "the deep label distribution learning of Gao et al. 2017: a network with hidden layers or convolutions, " +
			"and a softmax",
		Predicts: algorithms.Distribution,
		Settings: settings,
		Fill:     (*Config).fill,
		Check:    (*Config).check,
		Fits:     fits,
		Validation: func(c *Config) (share float64, least int) {
			return c.ValidationFraction, validationMin
		},
		Weights:      func(c *Config) string { return c.Network.Initial.Digest() },
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
	f := newFunction(c, 0, m)
	set := descentSettings(c, f)
	a := gradient.Memory(&set, f, m, 0)
	a.Model += 4*modelSettings + network.TableBytes(f)
	a.Weights = c.Network.Initial.Memory(f)
	return a
}
