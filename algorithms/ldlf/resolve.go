package ldlf

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
)

// denseShare is the share of non-zero entries from which preset auto
// standardises: mostly binary features are harmed by it.
const denseShare = 0.2

// validationMin is the least number of rows that early stopping validates on.
const validationMin = 20

// Preset auto updates the leaves, and validates, about once an epoch: within these
// bounds.
const (
	leastLeafBatches = 10
	mostLeafBatches  = 100
)

// adamRate is the learning rate with Adam where none is given: the presets'
// rates are SGD's.
const adamRate = 0.001

// resolve fills in what was not given: the preset's settings first, then the
// given ones, then those that follow from them.
func resolve(given algorithms.Values, m *dataset.Manifest) (*Config, error) {
	c := &Config{Preset: presetAuto}
	if v, ok := given["preset"]; ok {
		if err := settings[0].set(c, v); err != nil {
			return nil, err
		}
		if err := settings[0].check(c); err != nil {
			return nil, err
		}
	}
	c.fillPreset(m)
	if err := c.fillGiven(given); err != nil {
		return nil, err
	}
	c.fillRest(given, m)
	if err := c.check(); err != nil {
		return nil, err
	}
	return c, checkSize(c, m)
}

// fillPreset writes the settings of the preset: the paper's defaults (section 4),
// and for auto a rule that was chosen by inner validation (docs/auto.md).
func (c *Config) fillPreset(m *dataset.Manifest) {
	*c = Config{
		Preset: c.Preset, Trees: 5, Depth: 7, Bias: true, Scaling: scalingNone, BatchSize: 64,
		Optimizer: optimizerSGD, LearningRate: 0.1, LearningRateStep: 10_000, LearningRateDecay: 0.5, Momentum: 0.9,
		Init: initXavier, LeafIterations: 20, LeafBatches: 100, Patience: 10, Steps: 25_000,
	}
	if c.Preset == presetPaper {
		return
	}
	if m.Density() >= denseShare {
		c.Scaling = scalingStandard
	}
	c.BatchSize = 128
	c.LearningRate, c.LearningRateStep = 2, 0
	c.WeightDecay = 1e-5
	c.Init = initNormal
	c.LeafFirst = true
	c.ValidationFraction, c.Refit = 0.2, true
}

func (c *Config) fillGiven(given algorithms.Values) error {
	for i := range settings {
		s := &settings[i]
		if v, ok := given[s.Name]; ok {
			if err := s.set(c, v); err != nil {
				return err
			}
		}
	}
	return unknown(given)
}

// unknown reports the first given name, in alphabetical order, that is no setting.
func unknown(given algorithms.Values) error {
	var names []string
	for name := range given {
		if !slices.ContainsFunc(settings, func(s setting) bool { return s.Name == name }) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return paramError(names[0], "ldlf has no such setting")
}

// fillRest fills in what depends on other settings and was not given.
func (c *Config) fillRest(given algorithms.Values, m *dataset.Manifest) {
	missing := func(name string) bool { _, ok := given[name]; return !ok }
	if missing("outputs") && c.Depth >= 1 && c.Depth <= 20 {
		c.Outputs = max(64, 1<<(c.Depth-1))
	}
	if missing("leaf_batches") && c.Preset == presetAuto && c.BatchSize >= 1 {
		c.LeafBatches = min(max(leastLeafBatches, m.Rows/c.BatchSize), mostLeafBatches)
	}
	if missing("refit") && c.ValidationFraction == 0 {
		c.Refit = false
	}
	if missing("learning_rate") && c.Optimizer == optimizerAdam {
		c.LearningRate = adamRate
	}
	if missing("init") && !missing("init_std") && c.InitStd > 0 {
		c.Init = initNormal
	}
	if missing("init_std") && c.Init == initNormal {
		c.InitStd = 1 / math.Sqrt(max(1, meanNonZeros(m)))
	}
}

func meanNonZeros(m *dataset.Manifest) float64 {
	if m.Rows == 0 {
		return 0
	}
	return float64(m.NonZeros) / float64(m.Rows)
}

// checkSize refuses a forest whose parameters no partial could carry.
func checkSize(c *Config, m *dataset.Manifest) error {
	if m.Labels == 0 {
		return fmt.Errorf("ldlf: %w", errNoLabels)
	}
	z := newSizes(c, m.Features, m.Labels)
	if z.theta() > maxValues {
		return paramError("outputs", "Θ would hold %d values (%d features × %d units), more than the %d that are possible",
			z.theta(), m.Features, c.Outputs, maxValues)
	}
	if z.q() > maxValues {
		return paramError("depth", "the leaves would hold %d values (%d trees × %d leaves × %d labels), more than the %d that are possible",
			z.q(), c.Trees, z.leaves, m.Labels, maxValues)
	}
	return nil
}

func (c *Config) resolved() (algorithms.Resolved, error) {
	raw, err := json.Marshal(c)
	if err != nil {
		return algorithms.Resolved{}, fmt.Errorf("ldlf: settings: %w", err)
	}
	r := algorithms.Resolved{Params: raw, ValidationFraction: c.ValidationFraction}
	if c.ValidationFraction > 0 {
		r.ValidationMin = validationMin
	}
	return r, nil
}
