// Package sabfgs is the algorithm SA-BFGS of Geng 2016: the maximum-entropy model of package
// maxent, whose weights minimise the mean K-L divergence by a quasi-Newton method. The method is
// L-BFGS (package lbfgs); decay of the weights and early stopping are settings.
package sabfgs

import (
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// Name is the word that selects the algorithm in a spec.
const Name = "sa-bfgs"

// stateVersion is the version of a trainer's state.
const stateVersion = 3

// New returns the algorithm.
func New() algorithms.Algorithm {
	return learner.Define(learner.Definition[Config]{
		Name: Name,
		About: algorithms.About{
			Class:   "SABFGS",
			Summary: "maximum-entropy model, by L-BFGS",
			When:    "Use it for a result within seconds.",
			Paper:   `Geng 2016, "Label Distribution Learning"`,
		},
		Doc:      "the maximum-entropy model of Geng 2016, fitted by L-BFGS on all training samples",
		Predicts: algorithms.Distribution,
		Settings: settings,
		Fill:     (*Config).fill,
		Check:    func(c *Config) error { return c.Check(&c.Search) },
		Fits: func(_ *Config, m *dataset.Manifest) error {
			_, err := maxent.Size(m)
			return err
		},
		Validation: func(c *Config) (share float64, least int) { return c.Validation() },
		Trainer: func(j *learner.Job[Config]) (learner.Trainer, error) {
			return maxent.NewTrainer(&j.Config.Settings, j.Config.Search, j.Config.L2, "", j.Manifest), nil
		},
		StateVersion: stateVersion,
		Kernel: func(j *learner.Job[Config]) (round.Kernel, error) {
			return &kernel{maxent.Kernel{Features: j.Manifest.Features, Labels: j.Manifest.Labels}}, nil
		},
		Model:  maxent.Decode,
		Memory: func(c *Config, m *dataset.Manifest) algorithms.Footprint { return c.Memory(0, m) },
	})
}

var _ round.ReduceKernel = (*kernel)(nil)

// kernel is the workers' half: all of it is maxent's.
type kernel struct{ shared maxent.Kernel }

// NewScratch implements round.Kernel.
func (k *kernel) NewScratch() any { return k.shared.NewScratch(nil) }

// Derive implements round.ReduceKernel.
func (k *kernel) Derive(u round.Task, d *dataset.Data, _ round.Vars, scratch any) (round.Derived, error) {
	return k.shared.Derive(u, d, scratch.(*maxent.Scratch)), nil
}

// Run implements round.ReduceKernel.
func (k *kernel) Run(dst *round.Partial, u round.Task, d *dataset.Data, v round.Vars, derived round.Derived,
	scratch any) error {
	s := scratch.(*maxent.Scratch)
	s.Unit = u
	if !k.shared.Run(dst, &s.Unit, d, v, derived, s) {
		return fmt.Errorf("sa-bfgs: the task has the unknown operation %d", u.Op)
	}
	return nil
}

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
	maxent.First(shared, "raw features and no weight decay, and runs all iterations",
		"auto: standard if at least 20 % of the feature values are non-zero, else none; paper: none",
		param.Bool("bias", "give each label a bias", true, func(c *Config) *bool {
			return &c.Bias
		}).Preset(param.Paper, false)),
	param.Float("l2", "weight decay: ½·l2·‖W‖² is added to the loss; W excludes the biases", 0, 1e6, 0,
		func(c *Config) *float64 {
			return &c.L2
		}).
		Says(maxent.L2Says)),
	append(maxent.Decay(search, "l2"), maxent.Last(shared, search)...)...)

// fill computes what depends on the data or on other settings and was not given.
func (c *Config) fill(given param.Values, m *dataset.Manifest) {
	c.FillScaling(given, m, false)
	c.FillL2(&c.Search, &c.L2, given, m)
}
