package ensemble

import (
	"strconv"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
)

// Name is the word that selects the algorithm in a spec.
const Name = "ensemble"

// The words of the setting weights.
const (
	weightsFitted = "fitted"
	weightsMean   = "mean"
	weightsBest   = "best"
	// WeightsValidated chooses the best member on the first inner folds, or on validation samples from a file.
	WeightsValidated = "validated"
)

// The words of the setting inner.
const (
	innerAuto  = "auto"
	innerRows  = "rows"
	innerFolds = "folds"
)

// PresetBest selects the candidates that fit a budget of work, and trains the best of them by validation.
const PresetBest = "best"

// defaultBudget is in billions of multiply-additions.
const defaultBudget = 500

// Config holds the settings of a job, which settings describes.
type Config struct {
	Preset     string // that selected members; of a job none, as it is not written
	Members    string // a list of param.Item; of a resolved job each has all of its settings
	Weights    string
	InnerFolds int
	Validated  int    // how many inner folds choose the member, with WeightsValidated
	Inner      string // auto: wholeGroups tells
	WeightRows int
	Budget     float64 // in billions of multiply-additions; with PresetBest

	leastBudget float64 // for two candidates, where the candidates were chosen
	idleBudget  bool    // true if a budget other than the default chooses no members
}

// settings lists what a spec may say, in the order of help texts.
func (k kin) settings() param.Table[Config] {
	return param.Table[Config]{
		param.Word("preset", "auto uses the members with the best measured results (docs/design/defaults.md); paper uses "+
			"the two forests, with the values of their papers. best compares algorithms within the budget, and trains the "+
			"best one",
			func(c *Config) *string { return &c.Preset }, param.Auto, param.Paper, PresetBest).NotWritten(),
		param.Items("members", "algorithms whose weighted predictions are added, each with its settings; other settings "+
			"have the algorithm's defaults. A spec file may have a list, such as [{algorithm: structrf, trees: 100}, "+
			"{algorithm: ldlf}]",
			"algorithm", manyMembers, k.check, func(c *Config) *string { return &c.Members }).Preset(param.Paper, paperMembers).
			Says("auto: with " + strconv.Itoa(pairRows) + " to " + strconv.Itoa(fewRows) + " samples and at most " +
				strconv.Itoa(pairLabels) + " labels [" + pairMembers + "], else with at most " +
				strconv.Itoa(fewRows) + " samples [" + fewMembers + "], else [" + manyMembers + "]; paper: [" + paperMembers +
				"]; best: the algorithms that fit the budget, with their defaults. " + wideBooster + " takes the place of " +
				booster + " if the bins of all features times the labels are more than " + strconv.Itoa(mostSums)),
		param.Word("weights", "fitted: weights with the lowest out-of-fold K-L on the training samples, 0 for a member "+
			"that lowers the K-L by less than 0.1 %. mean: equal weights. best: weight 1 for the member with the lowest "+
			"out-of-fold K-L, which selects among settings. validated: like best, on the first inner folds only, or on "+
			"validation samples from a file; then only the best member is trained on all samples",
			func(c *Config) *string { return &c.Weights }, weightsFitted, weightsMean, weightsBest, WeightsValidated).
			Says("auto: fitted; paper: fitted; best: validated"),
		param.Int("inner_folds", "number of inner folds that fit the weights or choose the best member. Each member is "+
			"trained once for each inner fold, and once on all training samples. With weights validated, only the first inner "+
			"folds are used", 2, 20, 5,
			func(c *Config) *int { return &c.InnerFolds }).
			Says("auto: 5, but with weights fitted and " + strconv.Itoa(manyFoldsRows) + " to " + strconv.Itoa(fewRows) +
				" samples " + strconv.Itoa(manyFolds) + ", unless there are at most " + strconv.Itoa(manyFolds) + " groups; " +
				"paper: 5; best: " + strconv.Itoa(manyFolds) + ", but 5 below " + strconv.Itoa(manyFoldsRows) + " samples, with " +
				"at most " + strconv.Itoa(manyFolds) + " groups, and if only one of them chooses the member"),
		param.Int("validated_folds", "with weights validated, number of inner folds that choose the member. With preset "+
			"best, the default is as many as the budget allows, and with given members all inner folds up to "+
			strconv.Itoa(fewRows)+" samples", 1, 20, 1,
			func(c *Config) *int { return &c.Validated }).DefaultLeftOut(),
		param.Word("inner", "unit of the inner folds: rows (single samples) or folds (whole folds of the job, whose "+
			"samples stay together). With folds, at most as many inner folds are made as the job has training folds. With "+
			"groups, at most as many are made as there are groups",
			func(c *Config) *string { return &c.Inner }, innerAuto, innerRows, innerFolds).DefaultLeftOut().
			Says("auto: whole groups if the samples have groups, else folds if a file lists three or more folds, else rows"),
		param.Int("weight_rows", "maximum number of samples that fit the weights or choose the best member; if there are "+
			"more samples, this number is drawn", 1, 10_000_000, 100_000,
			func(c *Config) *int { return &c.WeightRows }),
		param.Float("budget", "with preset best: the work of all trainings together, in billions of multiply-additions. It "+
			"is estimated from the numbers of samples, non-zero features and labels, so the choice depends on no clock. A core "+
			"does one to three billion in a second", 0.001, 1e9, defaultBudget,
			func(c *Config) *float64 { return &c.Budget }).NotWritten(),
	}
}

// The default members are algorithms that err on different rows (docs/design/defaults.md has what was compared).
const (
	manyMembers = "structrf:trees=200:min_samples=5:features=0.33,ldlf," + booster
	booster     = "ldlboost"
	wideBooster = "ldlogitboost:refit=false" // keeps no histograms
	// up to fewRows rows: neighbours help where there are hundreds
	fewMembers   = "structrf:trees=200:min_samples=5,ldlf" + neighbours
	pairMembers  = fewMembers + ",df-ldl:preset=paper:iterations=50" // up to fewRows rows of few labels
	neighbours   = ",aa-knn"                                         // not of samples with weights
	paperMembers = "structrf:preset=paper,ldlf:preset=paper"

	fewRows = 2000

	// mostSums is the greatest number of bins times labels for which booster is a default member. With so many, the
	// histograms of a level of a tree take up to 512 MiB: two sums of 8 bytes in each of 32 nodes.
	mostSums   = 1 << 20
	memberBins = 64 // the default of booster

	// pairRows is from how many rows on pairMembers are the default, for at most pairLabels labels: the time of df-ldl
	// grows with the cube of the labels, and its neighbours need rows.
	pairRows   = 100
	pairLabels = 10

	// manyFolds is inner_folds there, from manyFoldsRows on: of five, each model lacks a fifth of few rows, and weights
	// would be fitted to members that are worse than they are on all rows, some more than others.
	manyFolds     = 10
	manyFoldsRows = 100
)

// takesManyFolds reports whether few rows are enough for manyFolds. If they have groups, so many must be left when one
// is tested. With fewer groups there are not as many inner folds of whole groups.
func takesManyFolds(m *dataset.Manifest) bool {
	return m.Rows >= manyFoldsRows && (m.Groups == nil || len(m.Groups.Names) > manyFolds)
}
