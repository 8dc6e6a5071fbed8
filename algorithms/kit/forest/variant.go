package forest

import (
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/binning"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// New returns the algorithm.
func (v Variant) New() algorithms.Algorithm {
	return learner.Define(learner.Definition[Config]{
		Name:     v.Name,
		Doc:      v.Doc,
		About:    v.About,
		Predicts: algorithms.Distribution,
		Targets:  v.OfTargets != nil,
		Settings: settingsOf(&v),
		Fill:     v.fill,
		Fits:     v.fits,
		Trainer: func(j *learner.Job[Config]) (learner.Trainer, error) {
			if j.Config.Split == splitHistogram {
				return newCountedTrainer(v, j.Config, j.Manifest, j.Seed), checkSplit(j.Config, j.Job, j.Manifest)
			}
			t := newTrainer(j.Config, j.Manifest.Features, j.Manifest.Labels)
			return t, checkSplit(j.Config, j.Job, j.Manifest)
		},
		StateVersion: stateFormat,
		Kernel: func(j *learner.Job[Config]) (round.Kernel, error) {
			if j.Config.Split == splitHistogram {
				return newCountedKernel(v, j.Config, j.Manifest, j.Seed), nil
			}
			k := &kernel{variant: v.on(j.Manifest), cfg: *j.Config, seed: j.Seed, features: j.Manifest.Features,
				labels: j.Manifest.Labels}
			counted := *j.Config
			if counted.Split = splitHistogram; v.Counted != nil && j.Folds == 0 && v.fits(&counted, j.Manifest) == nil {
				k.otherwise = "with split: histogram, no worker needs the whole dataset"
			}
			return k, nil
		},
		Model: func(tensors []algorithms.Tensor) (algorithms.Model, error) { return decodeModel(tensors) },
		Memory: func(c *Config, m *dataset.Manifest) algorithms.Footprint {
			if c.Split == splitHistogram {
				return countedMemory(c, m, v.Classes(m.Labels))
			}
			return memory(c, m)
		},
	})
}

// fill computes what depends on the data and was not given: with preset auto, forests of few rows have
// smaller leaves, so that folds of folds of them have enough for a split.
func (v Variant) fill(c *Config, given param.Values, m *dataset.Manifest) {
	if c.Preset == param.Auto {
		param.StandIn(given, "min_samples", &c.MinSamples, max(2, min(v.Auto.MinSamples, m.Rows/5)))
	}
}

// checkSplit returns an error if the job's split leaves so few or so many training rows that
// a bootstrap sample is too small or too large. If the folds or the groups are a list in a blob
// (Split.Assigned, Split.Groups), it returns nil: the trainer does not have the list, and newTable checks.
func checkSplit(c *Config, j *round.Job, m *dataset.Manifest) error {
	if j.Split.Assigned != "" || j.Split.Groups != "" {
		return nil
	}
	roles, err := j.Split.Assign(m.Rows, nil)
	if err != nil {
		return err
	}
	rows := 0
	for _, role := range roles {
		if role == dataset.Train {
			rows++
		}
	}
	return c.checkDraws(rows)
}

// paperSamples is the min_samples that the figures of Chen et al. are reached with.
const paperSamples = 20

// Sizes has the defaults of preset auto that structrf and rf do not share.
type Sizes struct{ Trees, MinSamples int }

// settingsOf lists what a spec may say, in the order of help texts. Preset paper has the values of
// section 4.4 of Chen et al. 2018; the paper does not give min_samples.
func settingsOf(v *Variant) param.Table[Config] {
	auto, sampling := v.Auto, "size of each tree's bootstrap sample, as a fraction of the training samples"
	if v.Counted != nil {
		sampling += "; with split histogram, the mean of Poisson draws of each sample"
	}
	table := param.Table[Config]{
		param.Word("preset", "auto uses the values with the best measured results (docs/design/defaults.md); paper uses "+
			"the values of section 4.4 of Chen et al. 2018, and is faster",
			func(c *Config) *string { return &c.Preset }, param.Auto, param.Paper).NotWritten(),
		param.Int("trees", "number of trees in the forest", 1, 10_000, auto.Trees, func(c *Config) *int {
			return &c.Trees
		}).Preset(param.Paper, 50).InPaper(),
		param.Int("max_depth", "maximum depth of a tree; the root has depth 0, and every node at the maximum depth is a leaf",
			1, maxDepth, 20,
			func(c *Config) *int { return &c.MaxDepth }).InPaper(),
		param.Float("sampling_ratio", sampling, 0.0001, 1, 0.8,
			func(c *Config) *float64 { return &c.SamplingRatio }).InPaper(),
		param.Bool("bootstrap", "grow each tree on a bootstrap sample, whose draws have probabilities in proportion to the "+
			"weights of the samples; false: grow each tree on all training samples, once each or by their weights", true,
			func(c *Config) *bool { return &c.Bootstrap }).DefaultLeftOut(),
		param.Int("min_samples", "minimum number of samples in a node that is split, repeated bootstrap draws included; a "+
			"leaf may have one sample", 2, maxDraws, auto.MinSamples,
			func(c *Config) *int { return &c.MinSamples }).Preset(param.Paper, paperSamples).
			Says(fmt.Sprintf("auto: %d, or a fifth of the samples if that is less; paper: %d", auto.MinSamples, paperSamples)),
		param.Text("features", "number of features tried at each node, drawn at random: all, sqrt (the square root of "+
			"their number) or a fraction such as 0.33",
			"all, sqrt, or a fraction of the features above 0 and at most 1", featuresAll, checkFeatures,
			func(c *Config) *string {
				return &c.Features
			}).InPaper(),
		param.Word("step", "search for the threshold of a feature: exhaustive tries all thresholds, adaptive skips "+
			"thresholds near thresholds with a low gain (Eq. 5 of Chen et al. 2018)",
			func(c *Config) *string { return &c.Step }, stepExhaustive, stepAdaptive).InPaper(),
		param.Float("alpha", "α of the adaptive step (Eq. 5 of Chen et al. 2018): a greater α means longer steps, which "+
			"skip more thresholds", 1e-6, 1, 0.25, func(c *Config) *float64 {
			return &c.Alpha
		}).InPaper(),
		param.Float("beta", "β of the adaptive step (Eq. 5 of Chen et al. 2018): a greater β shortens steps more sharply "+
			"near the best gain", 0, 100, 8,
			func(c *Config) *float64 { return &c.Beta }).InPaper(),
	}
	if v.Counted == nil {
		return table
	}
	return append(table,
		param.Word("split", "splits that trees try: exact (between any two values; one worker with the whole dataset "+
			"grows a tree) or histogram (between bins; all workers grow a tree together)",
			func(c *Config) *string { return &c.Split }, splitExact, splitHistogram).DefaultLeftOut(),
		param.Int("bins", "with split histogram: maximum number of intervals (bins) of the values of a feature; splits "+
			"lie between bins", 2, binning.Most, usualBins, func(c *Config) *int { return &c.Bins }).DefaultLeftOut(),
	)
}

// usualBins is the default of the setting bins.
const usualBins = 64

// maxCounts bounds the counts of a node, and so the numbers of a partial result.
const maxCounts = 1 << 26

// fits refuses data that histograms cannot divide, and counts of nodes that no message has room for.
func (v *Variant) fits(c *Config, m *dataset.Manifest) error {
	if c.Split != splitHistogram {
		if v.Counted != nil && c.Bins != usualBins {
			return param.Errorf("bins", "needs split histogram: exact trees have no bins")
		}
		return c.checkDraws(m.Rows)
	}
	switch n := c.countsAtMost(m, v.Classes(m.Labels)); {
	case m.LabelType.Bounds != nil:
		return param.Errorf("split", "histogram cannot learn targets in bounds: use split exact")
	case m.HasWeights:
		return param.Errorf("split", "histogram cannot use the weights of samples: use split exact, or data without weights")
	case n >= maxCounts:
		return param.Errorf("bins", "%d bins of up to %d features with %d labels may need %d numbers for a node, more than "+
			"%d: use fewer bins", c.Bins, m.Features, m.Labels, n, maxCounts-1)
	}
	return c.checkDraws(m.Rows)
}
