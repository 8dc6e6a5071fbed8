package boost

import (
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
)

// The words that settings take.
const (
	presetAuto  = "auto"
	presetPaper = "paper"

	startMean = "mean"
	startZero = "zero"
)

// validationMin is the least number of rows that early stopping validates on.
const validationMin = 20

// maxRounds and maxLeaves bound the rounds and the leaves of a tree.
const (
	maxRounds = 10_000
	maxLeaves = 4096
)

// maxDepth is the depth of a node that is not split: no walk takes more steps.
const maxDepth = 60

// Config holds the settings of a job, which settings describes.
type Config struct {
	Preset             string
	Rounds             int
	LearningRate       float64 // ν
	Leaves             int     // J
	LeafRows           int
	L2                 float64 // λ
	Start              string  // F before the first round: mean or zero
	ValidationFraction float64
	Patience           int
}

// newSettings lists what a spec may say, in the order of help texts.
func newSettings(v *Variant) param.Table[Config] {
	t := param.Table[Config]{
		param.Word("preset", "auto starts from the mean and stops early; paper starts from zero and makes all rounds",
			func(c *Config) *string { return &c.Preset }, presetAuto, presetPaper),
		param.Int("rounds", "boosting rounds, at most; early stopping may end before", 1, maxRounds, 500, func(c *Config) *int { return &c.Rounds }),
		param.Float("learning_rate", "factor of what each round adds", 1e-6, 1, 0.1, func(c *Config) *float64 { return &c.LearningRate }),
		param.Int("leaves", "leaves of a tree, at most", 2, maxLeaves, 20, func(c *Config) *int { return &c.Leaves }),
		param.Int("leaf_rows", "training samples that a leaf has at least", 1, 1<<30, 5, func(c *Config) *int { return &c.LeafRows }),
		param.Word("start", "what is predicted before the first round: the mean label distribution, or with zero the same probability for every label",
			func(c *Config) *string { return &c.Start }, startMean, startZero).
			Preset(presetPaper, startZero).Says("auto: mean; paper: zero"),
		param.Float("validation_fraction", "fraction of the training samples (at least 20 samples) kept for early stopping; 0: no early stopping", 0, 0.5, 0.1,
			func(c *Config) *float64 { return &c.ValidationFraction }).Preset(presetPaper, 0),
		param.Int("patience", "rounds without improvement after which training stops", 1, 1e9, 20, func(c *Config) *int { return &c.Patience }),
	}
	if v.L2 {
		t = append(t, param.Float("l2", "λ, which is added to the sum of the second derivatives of a node: greater ones shrink leaves of few samples",
			0, 1e6, 1, func(c *Config) *float64 { return &c.L2 }))
	}
	return t
}

// fits refuses leaves that no split of the rows could have.
func (c *Config) fits(m *dataset.Manifest) error {
	if 2*int64(c.LeafRows) > int64(m.Rows) {
		return param.Errorf("leaf_rows", "%d samples have no split into two leaves of %d", m.Rows, c.LeafRows)
	}
	return nil
}

// validates reports whether training may stop early.
func (c *Config) validates() bool { return c.ValidationFraction > 0 }
