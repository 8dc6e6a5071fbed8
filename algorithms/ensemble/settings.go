package ensemble

import (
	"strconv"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
)

// The words of the setting weights.
const (
	weightsFitted    = "fitted"
	weightsMean      = "mean"
	weightsBest      = "best"
	weightsValidated = "validated"
)

// The words of the setting inner.
const (
	innerAuto  = "auto"
	innerRows  = "rows"
	innerFolds = "folds"
)

// The presets. A job of auto has the digest that it had before there were presets.
const (
	presetAuto  = "auto"
	presetPaper = "paper"
)

// Config holds the settings of a job, which settings describes.
type Config struct {
	Preset     string // that selected members; of a job none, as it is not written
	Members    string // a list of param.Item; of a resolved job each has all of its settings
	Weights    string
	InnerFolds int
	Inner      string // auto: wholeGroups tells
	WeightRows int
}

// settings lists what a spec may say, in the order of help texts.
func (k kin) settings() param.Table[Config] {
	return param.Table[Config]{
		param.Word("preset", "which members: auto has the best that were measured (docs/design/defaults.md); paper has the two forests as their papers have them",
			func(c *Config) *string { return &c.Preset }, presetAuto, presetPaper).NotWritten(),
		param.Items("members", "algorithms whose predictions are added up, with settings of their own (of others, the defaults are those of the algorithm alone); in a spec file also a list, such as [{algorithm: structrf, trees: 100}, {algorithm: ldlf}]",
			"algorithm", manyMembers, k.check, func(c *Config) *string { return &c.Members }).Preset(presetPaper, paperMembers).
			Says("auto: " + manyMembers + ", up to " + strconv.Itoa(fewRows) + " samples " + fewMembers + "; paper: " + paperMembers),
		param.Word("weights", "fitted: the weights have the least K-L on predictions of training samples by models that were trained without them, and are 0 for a member that lowers it by less than a thousandth; mean: all weights are the same; best: the member with the least K-L on these predictions has all the weight, so that settings are chosen; validated: as best, by the first of the inner folds alone, and no other member is trained on all samples",
			func(c *Config) *string { return &c.Weights }, weightsFitted, weightsMean, weightsBest, weightsValidated),
		param.Int("inner_folds", "folds of the training samples by which weights are fitted, or the best member is chosen: each member is trained once for each, and once on all; with weights validated, one of so many parts scores the members", 2, 20, 5,
			func(c *Config) *int { return &c.InnerFolds }).
			Says("5; auto with weights fitted, from " + strconv.Itoa(manyFoldsRows) + " to " + strconv.Itoa(fewRows) + " samples: " + strconv.Itoa(manyFolds) + ", unless they have no more groups than that"),
		param.Word("inner", "what inner folds are made of: rows, single samples; or whole folds of the job, whose samples stay together: each inner fold has one or several, and where fewer than inner_folds are left when one is tested, there are as many as these",
			func(c *Config) *string { return &c.Inner }, innerAuto, innerRows, innerFolds).DefaultLeftOut().
			Says("auto: folds where a file lists three or more, or groups are the folds, and rows elsewhere"),
		param.Int("weight_rows", "samples at most that weights are fitted to, or the best member is chosen by; of more, so many are drawn", 1, 10_000_000, 100_000,
			func(c *Config) *int { return &c.WeightRows }),
	}
}

// The default members are algorithms that err on different rows. The trees of structrf are more and
// deeper than its own defaults, which are the paper's (docs/design/defaults.md has what was compared).
const (
	manyMembers  = "structrf:trees=200:min_samples=5:features=0.33,ldlf,ldlogitboost"
	fewMembers   = "structrf:trees=200:min_samples=5,ldlf,aa-knn" // up to fewRows rows: neighbours help where there are hundreds
	paperMembers = "structrf:preset=paper,ldlf:preset=paper"

	fewRows = 2000

	// manyFolds is inner_folds there, from manyFoldsRows on: of five, each model lacks a fifth of few rows, and weights would be
	// fitted to members that are worse than they are on all rows, some more than others.
	manyFolds     = 10
	manyFoldsRows = 100
)
