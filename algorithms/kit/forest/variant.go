package forest

import (
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms"
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
		Settings: settingsOf(v.Auto),
		Fill:     v.fill,
		Fits:     func(c *Config, m *dataset.Manifest) error { return c.checkDraws(m.Rows) },
		Trainer: func(j *learner.Job[Config]) (learner.Trainer, error) {
			t := newTrainer(j.Config, j.Manifest.Features, j.Manifest.Labels)
			return t, checkSplit(j.Config, j.Job, j.Manifest)
		},
		StateVersion: stateFormat,
		Kernel: func(j *learner.Job[Config]) (round.Kernel, error) {
			return &kernel{variant: v.on(j.Manifest), cfg: *j.Config, seed: j.Seed, features: j.Manifest.Features,
				labels: j.Manifest.Labels}, nil
		},
		Model:  func(tensors []algorithms.Tensor) (algorithms.Model, error) { return decodeModel(tensors) },
		Memory: memory,
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
func settingsOf(auto Sizes) param.Table[Config] {
	return param.Table[Config]{
		param.Word("preset", "auto uses the values with the best measured results (docs/design/defaults.md); paper uses "+
			"the values of section 4.4 of Chen et al. 2018, and is faster",
			func(c *Config) *string { return &c.Preset }, param.Auto, param.Paper).NotWritten(),
		param.Int("trees", "number of trees in the forest", 1, 10_000, auto.Trees, func(c *Config) *int {
			return &c.Trees
		}).Preset(param.Paper, 50).InPaper(),
		param.Int("max_depth", "maximum depth of a tree; the root has depth 0, and every node at the maximum depth is a leaf",
			1, maxDepth, 20,
			func(c *Config) *int { return &c.MaxDepth }).InPaper(),
		param.Float("sampling_ratio", "size of each tree's bootstrap sample, as a fraction of the training samples",
			0.0001, 1, 0.8,
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
}

// memory estimates the memory of a trainer. A node is split while min_samples or more
// reach it, so a tree has about 2·draws/min_samples leaves, at most one for each draw
// and 2^max_depth. The state is all trees, encoded and decoded; nothing is reduced.
func memory(c *Config, m *dataset.Manifest) algorithms.Footprint {
	draws := int64(max(1, c.draws(m.Rows)))
	leaves := min(draws, max(1, 2*draws/int64(max(1, c.MinSamples))), int64(1)<<c.MaxDepth)
	tree := treeHead + 2*leaves*nodeSize + 4*leaves*int64(m.Labels)
	model := int64(c.Trees) * tree
	return algorithms.Footprint{State: 2 * model, Model: model}
}
