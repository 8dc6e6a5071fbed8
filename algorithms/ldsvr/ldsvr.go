// Package ldsvr is LDSVR of Geng and Hou 2015: support vector regression of all labels at once.
//
// Label c of a row x is σ(f_c(x)), divided by the sum over the labels, with f(x) = Wφ(x) + b. The
// targets are the logits of the degrees, and what is minimised is
//
//	Γ = ½ Σ_c ‖w_c‖² + C Σ_i L(u_i),  u_i = ‖z_i - f(x_i)‖₂,  L(u) = (u - ε)² above ε, else 0
//
// by iteratively reweighted least squares: one zone of no loss for all labels. The kernel is
// exp(-‖x - y‖² / (2s²)), and s the mean distance between training rows.
//
// The fit is exact, a function of all training rows in one collected unit, or of landmarks:
// some training rows, with summed rounds over all.
package ldsvr

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/engine/round"
)

// Name is the word that selects the algorithm in a spec.
const Name = "ldsvr"

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
		Doc: "the LDSVR of Geng and Hou 2015: support vector regression of the logits ln(d/(1-d)) of all probabilities d, with Gaussian functions of distances. " +
			"Above 2,000 samples it has 512 landmarks, unless the spec says otherwise",
		Predicts:     algorithms.Distribution,
		Settings:     settings,
		Fill:         (*Config).fill,
		Fits:         (*Config).fits,
		Trainer:      func(j *learner.Job[Config]) (learner.Trainer, error) { return newTrainer(j), nil },
		Kernel:       func(j *learner.Job[Config]) (round.Kernel, error) { return newKernel(j), nil },
		StateVersion: 1,
		Model:        func(tensors []algorithms.Tensor) (algorithms.Model, error) { return decodeModel(tensors) },
		Memory:       memory,
	})
}
