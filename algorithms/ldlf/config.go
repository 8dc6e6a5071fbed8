package ldlf

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms"
)

// The words that settings take.
const (
	presetAuto  = "auto"
	presetPaper = "paper"

	scalingNone     = "none"
	scalingStandard = "standard"
	scalingMinMax   = "minmax"

	optimizerSGD  = "sgd"
	optimizerAdam = "adam"

	initXavier = "xavier"
	initNormal = "normal"
)

// Config holds the resolved settings of a job. Its JSON form is Job.Params:
// every field is present, in this order, so equal settings have equal bytes.
type Config struct {
	Preset             string  `json:"preset"`
	Trees              int     `json:"trees"`
	Depth              int     `json:"depth"`
	Outputs            int     `json:"outputs"`
	Bias               bool    `json:"bias"`
	Scaling            string  `json:"scaling"`
	BatchSize          int     `json:"batch_size"`
	Optimizer          string  `json:"optimizer"`
	LearningRate       float64 `json:"learning_rate"`
	LearningRateStep   int     `json:"learning_rate_step"`
	LearningRateDecay  float64 `json:"learning_rate_decay"`
	Momentum           float64 `json:"momentum"`
	WeightDecay        float64 `json:"weight_decay"`
	Init               string  `json:"init"`
	InitStd            float64 `json:"init_std"`
	LeafIterations     int     `json:"leaf_iterations"`
	LeafBatches        int     `json:"leaf_batches"`
	LeafFirst          bool    `json:"leaf_first"`
	ValidationFraction float64 `json:"validation_fraction"`
	ValidationMargin   float64 `json:"validation_margin"`
	Patience           int     `json:"patience"`
	Refit              bool    `json:"refit"`
	Steps              int     `json:"steps"`
}

// parseConfig reads the JSON form strictly: unknown keys and values out of range
// are errors.
func parseConfig(raw json.RawMessage) (*Config, error) {
	c := new(Config)
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(c); err != nil {
		return nil, fmt.Errorf("ldlf: settings: %w", err)
	}
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("ldlf: %w", err)
	}
	return c, nil
}

// check returns a *algorithms.ParamError for the first setting that is out of its
// range or contradicts another.
func (c *Config) check() error {
	for _, s := range settings {
		if err := s.check(c); err != nil {
			return err
		}
	}
	if splits := splitNodes(c.Depth); c.Outputs < splits {
		return paramError("outputs", "%d units are fewer than the %d split nodes of a tree of depth %d: give at least %d, or less depth",
			c.Outputs, splits, c.Depth, splits)
	}
	if c.Refit && c.ValidationFraction == 0 {
		return paramError("refit", "needs a validation_fraction above 0: it takes as many steps as were best by validation")
	}
	if c.Init == initNormal && c.InitStd == 0 {
		return paramError("init_std", "must be above 0 with init normal: from Θ = 0 all leaves stay alike")
	}
	if c.Init == initXavier && c.InitStd != 0 {
		return paramError("init_std", "belongs to init normal: with xavier the bound follows from the number of features")
	}
	return nil
}

func paramError(name, format string, args ...any) error {
	return &algorithms.ParamError{Name: name, Reason: fmt.Sprintf(format, args...)}
}
