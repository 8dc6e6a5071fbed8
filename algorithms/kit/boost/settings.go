// Package boost trains ldlogitboost and aoso-ldlogitboost: sums of trees whose softmax is a label
// distribution (Xing, Geng and Xue 2016, "Logistic boosting regression for label distribution
// learning"). The two differ in the Criterion that says what the trees of a round are fitted to;
// everything else is here. Package forest has columns, trees and the prediction by trees.
//
// With C labels, F is a row's C numbers and p = softmax(F). F begins at 0 or at the logarithms of
// the mean label distribution. Each round fits trees to the first and second derivatives of the
// cross-entropy by F, and adds them, times the learning rate. A tree grows best first: the leaf
// whose split gains most is split next.
//
// No result depends on the number of lanes, on shards or on the machine. Derivatives are
// whole multiples of 2^-k, so that their sums are exact in any order, and one fixed expression in
// float64 makes a gain: equal splits have equal gains, and
// the one with the lowest feature, then the lowest threshold, is taken. The sums of leaves are added in the order of
// the trees.
//
// F is no part of the trainer's state: a kernel keeps the sums of its rows with the number of
// rounds that made them, and adds the trees that are new. A kernel that has no sums, or sums of a
// later round, begins with the first tree and gets the same bits.
package boost

import (
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
)

// The words that settings take.
const (
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
	Refit              bool
}

// newSettings lists what a spec may say, in the order of help texts.
func newSettings(v *Variant) param.Table[Config] {
	t := param.Table[Config]{
		param.Word("preset", "auto starts from the mean label distribution and stops early; paper starts from equal "+
			"probabilities and runs all rounds",
			func(c *Config) *string { return &c.Preset }, param.Auto, param.Paper),
		param.Int("rounds", "maximum number of boosting rounds; early stopping may end training earlier", 1, maxRounds, 500,
			func(c *Config) *int {
				return &c.Rounds
			}),
		param.Float("learning_rate", "learning rate: factor of the trees that a round adds", 1e-6, 1, 0.1,
			func(c *Config) *float64 {
				return &c.LearningRate
			}),
		param.Int("leaves", "maximum number of leaves in a tree", 2, maxLeaves, 20, func(c *Config) *int {
			return &c.Leaves
		}),
		param.Int("leaf_rows", "minimum number of training samples in a leaf", 1, 1<<30, 5, func(c *Config) *int {
			return &c.LeafRows
		}),
		param.Word("start", "prediction before the first round: mean (the mean label distribution) or zero (the same "+
			"probability for every label)",
			func(c *Config) *string { return &c.Start }, startMean, startZero).
			Preset(param.Paper, startZero).Says("auto: mean; paper: zero"),
		param.Float("validation_fraction", "fraction of the training samples kept for validation and early stopping, at "+
			"least 20 samples; 0: no early stopping", 0, 0.5, 0.1,
			func(c *Config) *float64 { return &c.ValidationFraction }).Preset(param.Paper, 0),
		param.Int("patience", "number of rounds without improvement after which training stops", 1, 1e9, 20,
			func(c *Config) *int {
				return &c.Patience
			}),
		param.Bool("refit", "train again on all training samples, validation samples included, for the best number of rounds",
			true, func(c *Config) *bool {
				return &c.Refit
			}).
			Preset(param.Paper, false).LeftOut(param.Paper).
			Says("auto: true, or false if validation_fraction is 0 or with at least 20,000 samples; paper: false"),
	}
	if v.L2 {
		t = append(t, param.Float("l2", "λ: added to the sum of the second derivatives in a node; a greater λ shrinks the "+
			"values of leaves with few samples",
			0, 1e6, 1, func(c *Config) *float64 { return &c.L2 }))
	}
	return t
}

// manyRows is the least number of samples without a refit in preset auto.
const manyRows = 20_000

// fill sets the refit if it was not given.
func (c *Config) fill(given param.Values, m *dataset.Manifest) {
	if c.ValidationFraction == 0 || m.Rows >= manyRows {
		param.StandIn(given, "refit", &c.Refit, false)
	}
}

// check refuses a refit without validation.
func (c *Config) check() error {
	if c.Refit && !c.validates() {
		return param.Errorf("refit", "needs a validation_fraction above 0: validation finds the number of rounds of the "+
			"second training")
	}
	return nil
}

// fits refuses leaves that no split of the rows could have.
func (c *Config) fits(m *dataset.Manifest) error {
	if 2*int64(c.LeafRows) > int64(m.Rows) {
		return param.Errorf("leaf_rows", "%d samples cannot be split into two leaves of %d samples", m.Rows, c.LeafRows)
	}
	return nil
}

// validates reports whether training may stop early.
func (c *Config) validates() bool { return c.ValidationFraction > 0 }
