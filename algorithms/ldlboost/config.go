package ldlboost

import (
	"github.com/coppice-ldl/coppice/algorithms/kit/binning"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
)

// The words that settings take.
const (
	growLevel       = "level"
	growLeaf        = "leaf"
	hessianDiagonal = "diagonal"
	hessianBound    = "bound"
	startMean       = "mean"
	startZero       = "zero"
)

// Bounds of settings. No walk takes more than maxDepth steps.
const (
	maxRounds = 10_000
	maxLeaves = 4096
	maxDepth  = 60
	maxBins   = binning.Most
)

// validationMin is the least number of rows that early stopping validates on.
const validationMin = 20

// Config holds the settings of a job, which settings describes.
type Config struct {
	Preset             string
	Rounds             int
	LearningRate       float64 // ν
	Grow               string
	Depth              int
	Leaves             int
	LeafRows           int
	Bins               int
	Hessian            string
	L2                 float64 // λ
	MinGain            float64 // γ
	RowFraction        float64
	FeatureFraction    float64
	Start              string // F before the first round
	ValidationFraction float64
	Patience           int
	Refit              bool
}

// settings lists what a spec may say, in the order of help texts.
var settings = param.Table[Config]{
	param.Word("preset", "auto starts from the mean label distribution and stops early; paper starts from equal "+
		"probabilities and runs all rounds",
		func(c *Config) *string { return &c.Preset }, param.Auto, param.Paper),
	param.Int("rounds", "maximum number of boosting rounds; early stopping may end training earlier", 1, maxRounds, 500,
		func(c *Config) *int { return &c.Rounds }),
	param.Float("learning_rate", "learning rate: factor of the tree that a round adds", 1e-6, 1, 0.1,
		func(c *Config) *float64 { return &c.LearningRate }),
	param.Word("grow", "order of splits: level (all nodes of a depth, then the next depth) or leaf (the leaf whose split "+
		"gains most is next)",
		func(c *Config) *string { return &c.Grow }, growLevel, growLeaf),
	param.Int("max_depth", "maximum depth of a tree", 1, maxDepth, 6, func(c *Config) *int { return &c.Depth }).
		Says("6, or 60 with grow leaf"),
	param.Int("leaves", "maximum number of leaves in a tree", 2, maxLeaves, 64, func(c *Config) *int {
		return &c.Leaves
	}).Says("64, or 20 with grow leaf"),
	param.Int("leaf_rows", "minimum number of training samples in a leaf", 1, 1<<30, leafRows, func(c *Config) *int {
		return &c.LeafRows
	}).Says("20, or an eighth of the samples if there are fewer than 40"),
	param.Int("bins", "maximum number of intervals (bins) of the values of a feature; splits lie between bins", 2,
		maxBins, 64, func(c *Config) *int { return &c.Bins }),
	param.Word("hessian", "second derivatives of the loss: diagonal (one for each label) or bound (one upper bound for "+
		"all labels, so workers send half of the bytes)",
		func(c *Config) *string { return &c.Hessian }, hessianDiagonal, hessianBound),
	param.Float("l2", "λ: added to the sum of the second derivatives in a node; a greater λ shrinks the values of "+
		"leaves with few samples", 0, 1e6, 1, func(c *Config) *float64 { return &c.L2 }),
	param.Float("min_gain", "γ: minimum gain of a split, in nats, summed over the samples of the node", 0, 1e6, 0,
		func(c *Config) *float64 { return &c.MinGain }),
	param.Float("row_fraction", "fraction of the training samples that a tree is grown on, drawn for each tree", 0.01,
		1, 1, func(c *Config) *float64 { return &c.RowFraction }),
	param.Float("feature_fraction", "fraction of the features that a tree may use, drawn for each tree", 0.01, 1, 0.3,
		func(c *Config) *float64 { return &c.FeatureFraction }).
		Preset(param.Paper, 1).Says("auto: 0.3, or 1 with fewer than 20 features; paper: 1"),
	param.Word("start", "prediction before the first round: mean (the mean label distribution) or zero (the same "+
		"probability for every label)",
		func(c *Config) *string { return &c.Start }, startMean, startZero).
		Preset(param.Paper, startZero).Says("auto: mean; paper: zero"),
	param.Float("validation_fraction", "fraction of the training samples kept for validation and early stopping, at "+
		"least 20 samples; 0: no early stopping", 0, 0.5, 0.1,
		func(c *Config) *float64 { return &c.ValidationFraction }).Preset(param.Paper, 0),
	param.Int("patience", "number of rounds without improvement after which training stops", 1, 1e9, 20,
		func(c *Config) *int { return &c.Patience }),
	param.Bool("refit", "train again on all training samples, validation samples included, for the best number of rounds",
		true, func(c *Config) *bool { return &c.Refit }).
		Preset(param.Paper, false).
		Says("auto: true, or false if validation_fraction is 0 or with at least 20,000 samples; paper: false"),
}

// manyRows is the least number of samples without a refit in preset auto.
const manyRows = 20_000

// fewFeatures is the number of features below which preset auto draws none: trees of few of them see no interactions.
const fewFeatures = 20

// leafRows is the least number of rows in a leaf, unless two leaves have more rows than the dataset.
const leafRows = 20

// fill sets the refit, the size of trees and the drawing of features if they were not given.
func (c *Config) fill(given param.Values, m *dataset.Manifest) {
	if m.Rows < 2*leafRows {
		param.StandIn(given, "leaf_rows", &c.LeafRows, max(1, m.Rows/8))
	}
	if m.Features < fewFeatures {
		param.StandIn(given, "feature_fraction", &c.FeatureFraction, 1)
	}
	if c.ValidationFraction == 0 || m.Rows >= manyRows {
		param.StandIn(given, "refit", &c.Refit, false)
	}
	if c.Grow == growLeaf {
		param.StandIn(given, "max_depth", &c.Depth, maxDepth)
		param.StandIn(given, "leaves", &c.Leaves, 20)
	}
}

// check refuses a refit without validation.
func (c *Config) check() error {
	if c.Refit && c.ValidationFraction == 0 {
		return param.Errorf("refit", "needs a validation_fraction above 0: validation finds the number of rounds of the "+
			"second training")
	}
	return nil
}

// chunkValues is how many numbers the partials of a round have, about: of a level of more, several rounds sum the
// nodes.
const chunkValues = 1 << 21

// maxPartial bounds the numbers of a partial result, and so the histogram of a node.
const maxPartial = 1 << 26

// fits refuses leaves that no split of the rows could have, and histograms that no message has room for.
func (c *Config) fits(m *dataset.Manifest) error {
	if 2*int64(c.LeafRows) > int64(m.Rows) {
		return param.Errorf("leaf_rows", "%d samples cannot be split into two leaves of %d samples", m.Rows, c.LeafRows)
	}
	if n := c.histogramAtMost(m); n > maxPartial-1 {
		return param.Errorf("bins", "%d bins of up to %d features with %d labels may need %d numbers for a node, more than "+
			"%d: use fewer bins", c.Bins, m.Features, m.Labels, n, maxPartial-1)
	}
	return nil
}

// width is how many sums a bin has: its rows, then G by label, then, with hessian diagonal, H by label. With hessian
// bound, H is half of the weight. If rows have weights, the last sum is their weight.
func (c *Config) width(labels int, weighted bool) int {
	switch {
	case c.Hessian == hessianDiagonal:
		return 1 + 2*labels
	case weighted:
		return 2 + labels
	}
	return 1 + labels
}

// words is how many words the sums of a row take: two share one, unless they have weights.
func (c *Config) words(labels int, weighted bool) int {
	if n := c.width(labels, weighted); weighted {
		return n
	} else {
		return (n + 1) / 2
	}
}

// stride is how many words a row has in memory: whole vectors, whose last words may be 0.
func (c *Config) stride(labels int, weighted bool) int {
	return (c.words(labels, weighted) + vectorWords - 1) / vectorWords * vectorWords
}

// histogramAtMost is the greatest number of sums of a node.
func (c *Config) histogramAtMost(m *dataset.Manifest) int64 {
	return (1 + binning.AtMost(m, c.Bins)) * int64(c.width(m.Labels, m.HasWeights))
}

// histogramsAtMost is how many nodes have histograms at a time, at most.
func (c *Config) histogramsAtMost(m *dataset.Manifest) int64 {
	n := min(c.Leaves, max(1, m.Rows/max(1, c.LeafRows)))
	if c.Grow == growLevel {
		n = min(n, 1<<min(c.Depth-1, 30))
	}
	return int64(n)
}
