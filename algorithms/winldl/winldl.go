// Package winldl is WInLDL of Li and Chen 2024, "Incomplete Label Distribution Learning by Weights": a linear function
// without a penalty, whose weighted errors replace the penalties of other algorithms for incomplete labels.
//
// With a row x_i for each sample (its last value is 1, for a bias) and its degrees D, W minimises ½Σ Q²(XW - Y)², and
// the rows of XW are distributions. Where a degree is known, Y is the degree d, and Q is 2^(1-d). Where it is missing,
// Y is XW, and Q is (1 + t/T)^m in step t of T, where m is the mean of the known degrees of the label. A step of ADMM
// is
//
//	W = (XᵀX + ridge·I)⁻¹ Xᵀ(Z - Λ/ρ)
//	Z = the nearest distributions to (ρXW + Λ + Q²Y)/(Q² + ρ),  Λ ← Λ + ρ (XW - Z)
//
// and begins with Λ = 0 and Z = D, or m where a degree is missing. The text of the paper was not at hand: its abstract
// and PyLDL, a public program, give the steps. PyLDL begins with Z = 1, and counts a known 0 as missing in m.
//
// The weight of a sample is a factor of its loss and of its terms of the augmented Lagrangian. So its row of Z is the
// same, and weights are factors in XᵀX, in the right side of W, in m, and in the norms that end the steps.
//
// Z and Λ have a row for each sample. A worker keeps them for the tasks that it computed, if it has the memory. It
// computes them again from the beginning if it does not have them, or if another worker computed the last step: a round
// carries W of each step so far. So the bits do not depend on who computed a step. The prediction is the nearest point
// of the simplex to xW; zeros among its probabilities make a high K-L divergence. There are no validation samples.
package winldl

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/algorithms/kit/simplex"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// New returns the algorithm.
func New() algorithms.Algorithm {
	return learner.Define(learner.Definition[Config]{
		Name: Name,
		About: algorithms.About{
			Class:   "WInLDL",
			Summary: "linear function with weighted errors, for incomplete labels",
			When:    "Use it if most degrees are missing and the Chebyshev distance counts.",
			Paper:   `Li and Chen 2024, "Incomplete Label Distribution Learning by Weights"`,
		},
		Doc:        "WInLDL of Li and Chen 2024: a linear function by weighted least squares, without a penalty",
		Predicts:   algorithms.Distribution,
		Incomplete: true,
		Settings:   settings,
		Fill:       (*Config).fill,
		Fits:       fits,
		Trainer: func(j *learner.Job[Config]) (learner.Trainer, error) {
			return newTrainer(j.Config, j.Manifest), nil
		},
		StateVersion: 1,
		Kernel: func(j *learner.Job[Config]) (round.Kernel, error) {
			return &kernel{columns: j.Config.columns(j.Manifest), labels: j.Manifest.Labels, cfg: j.Config}, nil
		},
		Model: simplex.Decode,
		Memory: func(c *Config, m *dataset.Manifest) algorithms.Footprint {
			q := int64(m.Features + 1)
			weights, gram := 8*q*int64(m.Labels), 8*q*(q+1)/2
			return algorithms.Footprint{Model: weights + 64, Nodes: int64(len(m.Shards)),
				Node:  max(gram, weights, 8*int64(scaling.MostSums(c.Scaling, m))) + 16*int64(m.Labels) + 64,
				State: gram + int64(c.Iterations+8)*weights + 16*int64(m.Labels) + 256, Working: 4 * gram}
		},
	})
}
