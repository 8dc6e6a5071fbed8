package gldbfgs

import (
	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
)

// Name is the word that selects the algorithm in a spec.
const Name = "gld-bfgs"

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
