// Package gldbfgs is GLD-BFGS of Wu et al. 2026, for targets in bounds: g(x) = tanh(Wᵀx + b) predicts targets scaled to
// [-1, 1], and L-BFGS minimises
//
//	mean over samples of eᵀΩe + ½·l2·‖W‖²,  e = g(x) - g
//
// without the biases in the decay. In the first stage, Ω is the identity matrix. In each later stage, Ω is a mixture of
// the identity and of the inverse covariance of the errors e at the end of the stage before, as Ledoit and Wolf 2004
// estimate it:
//
//	Ω = a·C⁻¹ + (1 - a)·I, a = 0.2 in the second stage, 0.4 in the third
//	C = b·μ·I + (1 - b)·S, μ = tr S / labels, b = min(1, (mean ‖e - ē‖⁴ - ‖S‖²) / (samples·‖S - μI‖²))
//
// S is the covariance of the errors, a mean over samples. Of samples with weights, the means are weighted, and the
// number of samples is the sum of the weights. The paper's text was not at hand: PyLDL, a public program,
// gives the model and the mixture, but changes Ω within searches along a line. Here Ω changes between stages only, so
// each stage minimises one function.
//
// Later stages weigh labels by their errors in training, which says nothing of test samples if the training errors
// vanish. Preset auto has one stage, and validation chooses the decay as for sa-bfgs.
package gldbfgs

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// New returns the algorithm.
func New() algorithms.Algorithm {
	return learner.Define(learner.Definition[Config]{
		Name: Name,
		About: algorithms.About{
			Class:   "GLDBFGS",
			Summary: "linear model with bounded outputs",
			When:    "Use it for targets in bounds, for a result within seconds.",
			Paper:   `Wu et al. 2026, the algorithms GLD of PyLDL`,
		},
		Doc: "GLD-BFGS of Wu et al. 2026, for targets in bounds: the hyperbolic tangent of a linear function, fitted by " +
			"L-BFGS",
		Predicts:     algorithms.Targets,
		Settings:     settings,
		Fill:         func(c *Config, given param.Values, m *dataset.Manifest) { c.Fit.Fill(given, m) },
		Check:        (*Config).check,
		Fits:         (*Config).fits,
		Validation:   func(c *Config) (share float64, least int) { return c.Fit.Validation() },
		Trainer:      func(j *learner.Job[Config]) (learner.Trainer, error) { return newTrainer(j), nil },
		StateVersion: 1,
		Kernel: func(j *learner.Job[Config]) (round.Kernel, error) {
			return &kernel{features: j.Manifest.Features, labels: j.Manifest.Labels, moments: j.Config.Stages > 1}, nil
		},
		Model: learner.Decoder((*model).tensors),
		Memory: func(c *Config, m *dataset.Manifest) algorithms.Footprint {
			moments := 0
			if c.Stages > 1 {
				moments = momentSums(m.Labels)
			}
			f := c.Fit.Memory(moments, m)
			f.State += 8*int64(m.Labels)*int64(m.Labels) + 64
			return f
		},
	})
}
