package ptsvm

import (
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
)

// Name is the word that selects the algorithm in a spec.
const Name = "pt-svm"

// Config holds the settings of a job, which settings describes.
type Config struct {
	Preset             string
	Scaling            string
	Gamma              float64
	ValidationFraction float64
}

// validationMin is the least number of rows that validation chooses gamma by.
const validationMin = 20

// choices are the values of gamma that validation chooses from.
var choices = []float64{0.01, 0.1, 1}

// settings lists what a spec may say, in the order of help texts.
var settings = param.Table[Config]{
	param.Word("preset", "auto lets validation choose gamma; paper uses gamma 1 and standardises all features",
		func(c *Config) *string {
			return &c.Preset
		}, param.Auto, param.Paper),
	scaling.Setting(func(c *Config) *string { return &c.Scaling }).
		Says("auto: standard if at least 20 % of the feature values are non-zero, else none; paper: standard"),
	param.Float("gamma", "weight of the losses of the samples, in comparison with ½·‖w‖²; 0: validation chooses 0.01, "+
		"0.1 or 1", 0, 1e6, 0, func(c *Config) *float64 {
		return &c.Gamma
	}).Preset(param.Paper, 1),
	param.Float("validation_fraction", "fraction of the training samples by which gamma is chosen, at least 20 samples; "+
		"afterwards all of them are training samples", 0, 0.5, 0.1, func(c *Config) *float64 {
		return &c.ValidationFraction
	}).Says("auto: 0.1, or 0 if gamma is given; paper: 0"),
}

// fill computes what depends on the data or on other settings and was not given.
func (c *Config) fill(given param.Values, m *dataset.Manifest) {
	rule := scaling.Rule(m)
	if c.Preset == param.Paper {
		rule = scaling.Standard
	}
	param.StandIn(given, "scaling", &c.Scaling, rule)
	if c.Gamma > 0 {
		param.StandIn(given, "validation_fraction", &c.ValidationFraction, 0)
	}
}

func (c *Config) check() error {
	if c.Gamma == 0 && c.ValidationFraction == 0 {
		return param.Errorf("gamma", "must be above 0 without validation samples, which choose it")
	}
	return nil
}

// The bounds of a model.
const (
	maxLabels = 100
	maxValues = 1 << 25
)

// machineMore is how many values a machine has behind its weights of the features: the offset, and A and B of the
// sigmoid.
const machineMore = 3

// pairs returns how many pairs of labels there are.
func pairs(labels int) int { return labels * (labels - 1) / 2 }

// fits refuses too many labels, and a model that is too large.
func fits(m *dataset.Manifest) error {
	if m.Labels < 2 {
		return dataset.Errorf(dataset.ErrNoLabels, "one label has no pair to separate; give samples of two labels or classes")
	}
	if m.Labels > maxLabels {
		return fmt.Errorf("%d labels need %d support vector machines, one for each pair of labels; at most %d labels are "+
			"possible", m.Labels, pairs(m.Labels), maxLabels)
	}
	if n := int64(len(choices)) * int64(pairs(m.Labels)) * int64(m.Features+machineMore); n > maxValues {
		return fmt.Errorf("the machines of all pairs of labels would hold %d values, at most %d are possible", n, maxValues)
	}
	return nil
}
