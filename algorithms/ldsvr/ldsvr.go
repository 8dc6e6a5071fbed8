// Package ldsvr is LDSVR of Geng and Hou 2015: support vector regression of all labels at once.
//
// Label c of a row x is σ(f_c(x)), divided by the sum over the labels, with f(x) = Wφ(x) + b. The
// targets are the logits of the degrees, and what is minimised is
//
//	Γ = ½ Σ_c ‖w_c‖² + C Σ_i L(u_i),  u_i = ‖z_i - f(x_i)‖₂,  L(u) = (u - ε)² above ε, else 0
//
// by iteratively reweighted least squares: one zone of no loss for all labels. The kernel is
// exp(-‖x - y‖² / (2s²)), and s the mean distance between training rows. The weight of a row is a factor of C, and s
// counts each row once. Rows of weight 0 are no rows.
//
// The fit is exact, a function of all training rows in one collected unit, or of landmarks:
// some training rows, with summed rounds over all.
package ldsvr

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/rows"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// New returns the algorithm.
func New() algorithms.Algorithm {
	return learner.Define(learner.Definition[Config]{
		Name: Name,
		About: algorithms.About{
			Class:   "LDSVR",
			Summary: "support vector regression",
			When:    "Compare it with ldlf for ages and other numbers, and with structrf for a result within seconds.",
			Paper:   `Geng and Hou 2015, "Pre-Release Prediction of Crowd Opinion on Movies by Label Distribution Learning"`,
		},
		Doc: "the LDSVR of Geng and Hou 2015: support vector regression of the logits ln(d/(1-d)) of all probabilities d, " +
			"with Gaussian functions of distances. " +
			"Above 2,000 samples it has 512 landmarks, unless the spec says otherwise",
		Predicts:     algorithms.Distribution,
		Settings:     settings,
		Fill:         (*Config).fill,
		Fits:         (*Config).fits,
		Trainer:      func(j *learner.Job[Config]) (learner.Trainer, error) { return newTrainer(j), nil },
		Kernel:       func(j *learner.Job[Config]) (round.Kernel, error) { return newKernel(j), nil },
		StateVersion: 1,
		Model:        learner.Decoder((*model).tensors),
		Memory:       memory,
	})
}

// memory estimates the memory of a trainer.
func memory(c *Config, m *dataset.Manifest) algorithms.Footprint {
	encoded, tensors := rows.Bytes(m, c.kept(0))
	n := int64(m.Rows)
	if c.Landmarks > 0 {
		n = min(n, int64(c.Landmarks))
	}
	values := 8 * (n + 1) * int64(m.Labels)
	f := algorithms.Footprint{
		State: encoded + 2*values + stateBytes, Model: tensors + values + 8 + 4*modelSettings,
		Node: int64(8 * scaling.MostSums(c.Scaling, m)), Nodes: int64(len(m.Shards)),
	}
	if c.Landmarks > 0 {
		f.Node = max(f.Node, 8*int64(gramSums(int(n), m.Labels)))
	}
	if c.Scaling != scaling.None {
		f.State += 16*int64(m.Features) + 17
		f.Model += 16 * int64(m.Features)
	}
	return f
}
