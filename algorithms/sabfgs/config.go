package sabfgs

import (
	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
)

// Config holds the settings of a job, which settings describes.
type Config struct {
	maxent.Settings
	maxent.Search
	L2 float64
}

func shared(c *Config) *maxent.Settings { return &c.Settings }
func search(c *Config) *maxent.Search   { return &c.Search }

// settings lists what a spec may say, in the order of help texts.
var settings = append(append(
	maxent.First(shared, "raw features and no weight decay, and runs all iterations", "auto: standard if at least 20 % of the feature values are non-zero, else none; paper: none",
		param.Bool("bias", "give each label a bias", true, func(c *Config) *bool { return &c.Bias }).Preset(maxent.Paper, false)),
	param.Float("l2", "weight decay: ½·l2·‖W‖² is added to the loss; W excludes the biases", 0, 1e6, 0, func(c *Config) *float64 { return &c.L2 }).
		Says(maxent.L2Says)),
	append(maxent.Decay(search, "l2"), maxent.Last(shared, search)...)...)

// fill computes what depends on the data or on other settings and was not given.
func (c *Config) fill(given param.Values, m *dataset.Manifest) {
	c.FillScaling(given, m, false)
	c.FillL2(&c.Search, &c.L2, given, m)
}
