package saiis

import (
	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
)

// Name is the word that selects the algorithm in a spec.
const Name = "sa-iis"

// Config holds the settings of a job, which settings describes.
type Config struct {
	maxent.Settings
	NewtonSteps int
	Tolerance   float64
}

func shared(c *Config) *maxent.Settings { return &c.Settings }

// settings lists what a spec may say, in the order of help texts.
var settings = append(append(
	maxent.First(shared, "raw features, and runs all iterations",
		"auto: standard if at least 20 % of the feature values are non-zero, else none; paper: none",
		param.Bool("bias", "give each label a bias", true, func(c *Config) *bool {
			return &c.Bias
		}).Preset(param.Paper, false)),
	param.Int("iterations", "maximum number of iterations of improved iterative scaling; tolerance or early stopping "+
		"may end training earlier", 1, 1<<40, 400,
		func(c *Config) *int { return &c.Iterations }).Preset(param.Paper, 200),
	param.Int("newton_steps", "maximum number of Newton steps for the change of each weight in an iteration", 1, 1000, 6,
		func(c *Config) *int { return &c.NewtonSteps }),
	param.Float("tolerance", "Newton steps for a weight end if the error of its equation is at most this fraction of "+
		"the sum of the feature's absolute values. Training ends if all changes are 0",
		0, 1, 1e-6, func(c *Config) *float64 { return &c.Tolerance })),
	maxent.Stopping(shared, "")...)

// fill computes what depends on the data and was not given.
func (c *Config) fill(given param.Values, m *dataset.Manifest) { c.FillScaling(given, m, false) }
