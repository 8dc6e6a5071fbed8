// Package incomldl is IncomLDL of Xu and Zhou 2017, "Incomplete Label Distribution Learning", by ADMM (IncomLDL-a): a
// linear function of low rank, for labels in which degrees are missing.
//
// With a row x_i for each sample (its last value is 1, for a bias), its degrees D and a mask O, which is 1 where a
// degree is known, W minimises
//
//	½‖O∘(XW - D)‖² + λ‖XW‖_tr,  the rows of XW are distributions
//
// where ‖·‖_tr is the sum of the singular values. A step of ADMM (section 4.2 of the paper) is
//
//	M = argmin ½‖O∘(M - D)‖² + ½ρ‖M - Z + Λ/ρ‖², the rows of M are distributions
//	W = (XᵀX + ε I)⁻¹ XᵀM
//	Z = the threshold of XW + Λ/ρ at λ/ρ (package eigen),  Λ ← Λ + ρ (XW - Z)
//
// The paper solves a quadratic program for each row of M. Here it is a projection on the simplex, which is exact. The
// paper has the pseudo-inverse of X, with which W interpolates where features outnumber samples; ε replaces it.
//
// Z and Λ have a row for each sample, but no worker keeps them. They begin at 0, and a step multiplies them by matrices
// from the right. So Z = XH and Λ = ρXG, where H and G are of the size of W: the leader has them, and all norms follow
// from XᵀX. A round sums XᵀM, and depends on W's size alone. The prediction is the nearest point of the simplex to xW.
//
// There are no validation samples. The paper chooses λ by inner folds.
package incomldl

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
			Class:   "IncomLDL",
			Summary: "linear function of low rank, for incomplete labels",
			When:    "Use it to compare with its paper; sa-bfgs has a lower K-L divergence on incomplete labels.",
			Paper:   `Xu and Zhou 2017, "Incomplete Label Distribution Learning"`,
		},
		Doc:        "IncomLDL of Xu and Zhou 2017: a linear function by least squares, whose predictions have a low rank",
		Predicts:   algorithms.Distribution,
		Incomplete: true,
		Unweighted: "the rank of the predictions of all samples is in its loss, which is no sum over samples",
		Settings:   settings,
		Fill:       (*Config).fill,
		Fits:       func(_ *Config, m *dataset.Manifest) error { return simplex.Fits(m) },
		Trainer: func(j *learner.Job[Config]) (learner.Trainer, error) {
			return newTrainer(j.Config, j.Manifest), nil
		},
		StateVersion: 1,
		Kernel: func(j *learner.Job[Config]) (round.Kernel, error) {
			return &kernel{columns: j.Config.columns(j.Manifest), labels: j.Manifest.Labels, rho: j.Config.Rho}, nil
		},
		Model: simplex.Decode,
		Memory: func(c *Config, m *dataset.Manifest) algorithms.Footprint {
			q := int64(m.Features + 1)
			weights, gram := 8*q*int64(m.Labels), 8*q*(q+1)/2
			return algorithms.Footprint{Model: weights + 64, Nodes: int64(len(m.Shards)),
				Node:  max(gram, weights, 8*int64(scaling.MostSums(c.Scaling, m))) + 64,
				State: gram + 12*weights + 256, Working: 4 * gram}
		},
	})
}
