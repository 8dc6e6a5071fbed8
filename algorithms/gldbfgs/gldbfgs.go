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
// S is the covariance of the errors, a mean over samples. The paper's text was not at hand: PyLDL, a public program,
// gives the model and the mixture, but changes Ω within searches along a line. Here Ω changes between stages only, so
// each stage minimises one function.
//
// Later stages weigh labels by their errors in training, which says nothing of test samples if the training errors
// vanish. Preset auto has one stage, and validation chooses the decay as for sa-bfgs.
package gldbfgs

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// Name is the word that selects the algorithm in a spec.
const Name = "gld-bfgs"

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
			f := c.Fit.Memory(c.momentSums(m.Labels), m)
			f.State += 8*int64(m.Labels)*int64(m.Labels) + 64
			return f
		},
	})
}

// Config holds the settings of a job, which settings describes.
type Config struct {
	maxent.Fit
	Stages, StageIterations int
}

func fit(c *Config) *maxent.Fit         { return &c.Fit }
func shared(c *Config) *maxent.Settings { return &c.Settings }
func search(c *Config) *maxent.Search   { return &c.Search }

// mostStages is the greatest number of stages, and mostMoments the greatest number of labels of several stages.
const (
	mostStages  = 3
	mostMoments = 512
)

// settings lists what a spec may say, in the order of help texts.
var settings = table()

func table() param.Table[Config] {
	t := maxent.First(shared, "raw features, three stages and no weight decay, and runs all iterations",
		"auto: standard if at least 20 % of the feature values are non-zero, else none; paper: none",
		param.Bool("bias", "give each label a bias", true, func(c *Config) *bool { return &c.Bias }))
	t = append(t, maxent.Decayed(fit),
		param.Int("stages", "number of stages: each later stage weighs errors by the inverse of their covariance in "+
			"training. Several stages need decay fixed and validation_fraction 0", 1, mostStages, 1,
			func(c *Config) *int { return &c.Stages }).Preset(param.Paper, mostStages).InPaper(),
		param.Int("stage_iterations", "maximum number of L-BFGS iterations of each later stage", 1, 1<<20, 100,
			func(c *Config) *int { return &c.StageIterations }))
	return append(append(t, maxent.Decay(search, "l2")...), maxent.Last(shared, search)...)
}

// check refuses settings that contradict each other.
func (c *Config) check() error {
	if err := c.Fit.Check(&c.Search); err != nil {
		return err
	}
	if c.Stages > 1 && (c.Decay != maxent.DecayFixed || c.ValidationFraction > 0) {
		return param.Errorf("stages", "got %d, want 1, because several stages need decay fixed and validation_fraction 0",
			c.Stages)
	}
	return nil
}

// fits refuses models that are too large.
func (c *Config) fits(m *dataset.Manifest) error {
	if c.Stages > 1 && m.Labels > mostMoments {
		return param.Errorf("stages", "got %d, want 1 for %d labels: several stages need at most %d labels", c.Stages,
			m.Labels, mostMoments)
	}
	_, err := maxent.Size(m)
	return err
}

// momentSums is the number of sums of an evaluation for covariances.
func (c *Config) momentSums(labels int) int {
	if c.Stages == 1 {
		return 0
	}
	return momentSums(labels)
}
