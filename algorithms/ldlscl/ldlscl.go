// Package ldlscl is LDL-SCL of Zheng, Jia and Li 2018: a maximum-entropy model in which samples have codes, so that
// similar samples share correlations of labels.
//
// k-means of the label distributions d gives m centres P_1 to P_m. A training sample has a code c with m positive
// numbers, its closeness to each centre, and the prediction p = softmax(Wᵀx + Vᵀc). The objective is the mean over
// samples of
//
//	K-L(d, p) + λ1 Σ_l c_l ‖p - P_l‖² + λ2 Σ_l 1/c_l
//
// and ½ λ3 (‖W‖² + ‖V‖²), without the biases. L-BFGS minimises it over W, V and ln c of all training samples together,
// from W = 0, V = 0 and c = 1. The code of a new sample follows from its features: ridge regression from x to ln c of
// the training samples. The weight of a sample is a factor of its terms, of its part in the centres and in the
// regression; a sample of weight 0 is no centre. The weight of the squares of this regression is
// ridge·tr(XᵀX)/(features + 1), and the bias has none. ln c of a new sample is at most 20 away from 0.
//
// The paper's text was not at hand: its abstract and PyLDL, a public program, give the terms. PyLDL trains a network of
// two layers by Adam, and multiplies two means. Here, k-means is deterministic.
//
// The codes are in the trainer, as a part of the point of L-BFGS. An evaluation sums the derivatives by all codes, to
// which each task adds only the codes of its samples. So a dataset has at most 131,072 codes: 26,214 samples with five
// centres. There are no validation samples.
package ldlscl

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/engine/round"
)

// New returns the algorithm.
func New() algorithms.Algorithm {
	return learner.Define(learner.Definition[Config]{
		Name: Name,
		About: algorithms.About{
			Class:   "LDLSCL",
			Summary: "maximum-entropy model with codes of samples, which share correlations of labels",
			When:    "Use it to compare with its paper; sa-bfgs has a lower K-L divergence and takes less time.",
			Paper:   `Zheng, Jia and Li 2018, "Label Distribution Learning by Exploiting Sample Correlations Locally"`,
		},
		Doc: "LDL-SCL of Zheng, Jia and Li 2018: a maximum-entropy model whose samples have codes, by which similar " +
			"samples share correlations of labels",
		Predicts: algorithms.Distribution,
		Settings: settings,
		Fill:     (*Config).fill,
		Fits:     (*Config).fits,
		Trainer: func(j *learner.Job[Config]) (learner.Trainer, error) {
			return newTrainer(j.Config, j.Manifest), nil
		},
		StateVersion: 1,
		Kernel: func(j *learner.Job[Config]) (round.Kernel, error) {
			return &kernel{sizesOf(j.Config, j.Manifest), j.Config.Lambda1, j.Config.Lambda2}, nil
		},
		Model:  learner.Decoder((*model).tensors),
		Memory: (*Config).memory,
	})
}
