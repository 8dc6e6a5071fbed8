// Package sabfgs is the algorithm SA-BFGS of Geng 2016: the maximum-entropy model of package
// maxent, whose weights minimise the mean K-L divergence by a quasi-Newton method. The method is
// L-BFGS (package lbfgs); decay of the weights and early stopping are settings. Where degrees are missing, the missing
// labels of a sample are one label of known degree: see maxent.Kernel.
package sabfgs

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
)

// Name is the word that selects the algorithm in a spec.
const Name = "sa-bfgs"

// stateVersion is the version of a trainer's state.
const stateVersion = 3

// New returns the algorithm.
func New() algorithms.Algorithm {
	return maxent.Define(learner.Definition[Config]{
		Name: Name,
		About: algorithms.About{
			Class:   "SABFGS",
			Summary: "maximum-entropy model, by L-BFGS",
			When:    "Use it for a result within seconds.",
			Paper:   `Geng 2016, "Label Distribution Learning"`,
		},
		Doc:          "the maximum-entropy model of Geng 2016, fitted by L-BFGS on all training samples",
		Incomplete:   true,
		Settings:     settings,
		StateVersion: stateVersion,
	}, fit, maxent.Added[Config]{})
}

// Config holds the settings of a job, which settings describes.
type Config struct{ maxent.Fit }

func fit(c *Config) *maxent.Fit { return &c.Fit }

// settings lists what a spec may say, in the order of help texts.
var settings = maxent.Table(fit, "raw features and no weight decay, and runs all iterations", maxent.Decayed(fit))
