package ptbayes

import "github.com/coppice-ldl/coppice/algorithms/kit/param"

// Name is the word that selects the algorithm in a spec.
const Name = "pt-bayes"

// Config holds the settings of a job, which settings describes.
type Config struct {
	Preset             string
	Samples            string
	Smoothing          float64
	ValidationFraction float64
}

// What the samples of a label are.
const (
	samplesWeighted = "weighted"
	samplesDrawn    = "drawn"
)

// validationMin is the least number of rows that validation chooses the smoothing by.
const validationMin = 20

// choices are the values of the smoothing that validation chooses from.
var choices = []float64{1e-3, 1e-2, 1e-1, 1, 10, 100, 1000}

// settings lists what a spec may say, in the order of help texts.
var settings = param.Table[Config]{
	param.Word("preset", "auto weights samples by their degrees, and validation chooses the smoothing; paper draws "+
		"samples",
		func(c *Config) *string {
			return &c.Preset
		}, param.Auto, param.Paper),
	param.Word("samples", "samples of a label: all samples, weighted by their degrees, or samples that are drawn with "+
		"these weights", func(c *Config) *string {
		return &c.Samples
	}, samplesWeighted, samplesDrawn).Preset(param.Paper, samplesDrawn).InPaper(),
	param.Float("smoothing", "this multiple of the greatest variance of a feature is added to each variance of a label; "+
		"0: validation chooses 0.001, 0.01, 0.1, 1, 10, 100 or 1000", 0, 1e6, 0, func(c *Config) *float64 {
		return &c.Smoothing
	}).Preset(param.Paper, 0.1),
	param.Float("validation_fraction", "fraction of the training samples by which the smoothing is chosen, at least 20 "+
		"samples; afterwards all of them are training samples", 0, 0.5, 0.1, func(c *Config) *float64 {
		return &c.ValidationFraction
	}).Says("auto: 0.1, or 0 if smoothing is given; paper: 0"),
}
