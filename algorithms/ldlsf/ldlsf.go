// Package ldlsf is LDLSF of Ren et al. 2019: a linear function with features that a label has for itself, and features
// that all labels share.
//
// With a row x_i (its last value is 1, for the bias) and d_i for each sample, W = W1 + W2 minimises
//
//	½‖XW - D‖² + λ1 ‖W1‖₁ + λ2 Σ_rows ‖W2‖ + λ3 tr(XW Ψ (XW)ᵀ),  X W 1 = 1,  Ψ = diag(R 1) - R
//
// where R has Pearson's correlations of the labels, 0 for a constant label. The bias has no penalty. The paper's text
// was not at hand: its abstract and PyLDL, a public program, give the terms. PyLDL shrinks the columns of W2; the
// abstract speaks of features that all labels share, and these are rows.
//
// All that the objective needs of the samples is XᵀX, XᵀD and DᵀD: one round sums them, weighted, after the scaling.
// ADMM then runs in the trainer, so that shards need no state, and a job is cut before or after it. With K = XᵀX and
// M = I + 2 λ3 Ψ + ρ 1 1ᵀ = U diag(m) Uᵀ, a step solves for W
//
//	K W M + ρ B W = XᵀD - V + ρ (W1 + W2) - (v - ρ Xᵀ1) 1ᵀ
//
// by a Cholesky factor of m_k K + ρ B for each label (B is I without the bias); then W1 and W2 are shrunk, and the
// multipliers V and v follow. There are no validation samples. The prediction is the nearest point of the simplex to
// xW; zeros among its probabilities make a high K-L divergence.
package ldlsf

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
			Class:   "LDLSF",
			Summary: "linear function with label-specific features",
			When:    "Use it to compare with its paper; sa-bfgs has a lower K-L divergence.",
			Paper:   `Ren et al. 2019, "Label Distribution Learning with Label-Specific Features"`,
		},
		Doc: "LDLSF of Ren et al. 2019: a linear function by least squares, with features of single labels and features " +
			"that all labels share",
		Predicts: algorithms.Distribution,
		Settings: settings,
		Fill:     (*Config).fill,
		Fits:     func(_ *Config, m *dataset.Manifest) error { return fits(m) },
		Trainer: func(j *learner.Job[Config]) (learner.Trainer, error) {
			return newTrainer(j.Config, j.Manifest), nil
		},
		StateVersion: 1,
		Kernel: func(j *learner.Job[Config]) (round.Kernel, error) {
			return &kernel{features: j.Manifest.Features, labels: j.Manifest.Labels}, nil
		},
		Model: simplex.Decode,
		Memory: func(c *Config, m *dataset.Manifest) algorithms.Footprint {
			q, sums := int64(m.Features+1), 8*max(1, sumsOf(m.Features, m.Labels))
			weights := 8 * q * int64(m.Labels)
			f := algorithms.Footprint{Model: weights + 64, Nodes: int64(len(m.Shards)),
				Node:  max(sums, 8*int64(scaling.MostSums(c.Scaling, m))),
				State: 16*weights + 256, Working: 8 * int64(m.Labels+12) * q * q}
			return f
		},
	})
}
