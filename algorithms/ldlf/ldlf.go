// Package ldlf implements the label distribution learning forest of Shen et al.
// 2017 ("Label Distribution Learning Forests"): an ensemble of differentiable
// decision trees whose split nodes read the outputs of one feature function
// f(x; Θ) and whose leaves hold label distributions q.
//
// The terms are the paper's. A tree of depth h has 2^(h-1) - 1 split nodes, in
// heap order (the children of n are 2n+1 and 2n+2), and 2^(h-1) leaves, left to
// right. s_n(x) = σ(f_φ(n)(x; Θ)) is the probability that split node n sends x to
// the left; φ is, for each tree, the start of a permutation of f's output units.
// p(ℓ|x) is the probability that x reaches leaf ℓ (Eq. 1), g(x) = Σ_ℓ p(ℓ|x) q_ℓ
// the prediction of a tree (Eq. 2), and the prediction of a forest is the mean of
// its trees'.
//
// The trainer alternates as Algorithm 1 says: leaf_batches gradient steps on Θ
// (Eqs. 5, 6 and 13), then leaf_iterations fixed-point iterations of Eq. 12 on the
// mini-batches of those steps. DESIGN.md says where each equation lives and what
// was decided where the paper leaves a choice.
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
		Doc: "the label distribution learning forests of Shen et al. 2017: differentiable trees whose splits are " +
			"computed by a linear function or a network",
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
