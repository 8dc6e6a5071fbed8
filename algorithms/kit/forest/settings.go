package forest

import (
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
)

// paperSamples is the min_samples that the figures of Chen et al. are reached with.
const paperSamples = 20

// The presets. The first is the default.
const (
	presetAuto  = "auto"
	presetPaper = "paper"
)

// Sizes has the defaults of preset auto that structrf and rf do not share.
type Sizes struct{ Trees, MinSamples int }

// settingsOf lists what a spec may say, in the order of help texts. Preset paper has the values of
// section 4.4 of Chen et al. 2018; the paper does not give min_samples.
func settingsOf(auto Sizes) param.Table[Config] {
	return param.Table[Config]{
		param.Word("preset", "auto uses the values with the best measured results (docs/design/defaults.md); paper uses the values of section 4.4 of Chen et al. 2018, and is faster",
			func(c *Config) *string { return &c.Preset }, presetAuto, presetPaper).NotWritten(),
		param.Int("trees", "number of trees in the forest", 1, 10_000, auto.Trees, func(c *Config) *int { return &c.Trees }).Preset(presetPaper, 50).InPaper(),
		param.Int("max_depth", "maximum depth of a tree; the root has depth 0, and every node at the maximum depth is a leaf", 1, maxDepth, 20,
			func(c *Config) *int { return &c.MaxDepth }).InPaper(),
		param.Float("sampling_ratio", "size of each tree's bootstrap sample, as a fraction of the training samples", 0.0001, 1, 0.8,
			func(c *Config) *float64 { return &c.SamplingRatio }).InPaper(),
		param.Int("min_samples", "minimum number of samples in a node that is split, repeated bootstrap draws included; a leaf may have one sample", 2, maxDraws, auto.MinSamples,
			func(c *Config) *int { return &c.MinSamples }).Preset(presetPaper, paperSamples).
			Says(fmt.Sprintf("auto: %d, or a fifth of the samples if that is less; paper: %d", auto.MinSamples, paperSamples)),
		param.Text("features", "number of features tried at each node, drawn at random: all, sqrt (the square root of their number) or a fraction such as 0.33",
			"all, sqrt, or a fraction of the features above 0 and at most 1", featuresAll, checkFeatures, func(c *Config) *string { return &c.Features }).InPaper(),
		param.Word("step", "search for the threshold of a feature: exhaustive tries all thresholds, adaptive skips thresholds near thresholds with a low gain (Eq. 5 of Chen et al. 2018)",
			func(c *Config) *string { return &c.Step }, stepExhaustive, stepAdaptive).InPaper(),
		param.Float("alpha", "α of the adaptive step (Eq. 5 of Chen et al. 2018): a greater α means longer steps, which skip more thresholds", 1e-6, 1, 0.25, func(c *Config) *float64 { return &c.Alpha }).InPaper(),
		param.Float("beta", "β of the adaptive step (Eq. 5 of Chen et al. 2018): a greater β shortens steps more sharply near the best gain", 0, 100, 8,
			func(c *Config) *float64 { return &c.Beta }).InPaper(),
	}
}
