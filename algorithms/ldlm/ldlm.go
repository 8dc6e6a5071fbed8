// Package ldlm is LDLM of Wang and Geng 2021: a maximum-entropy model for classification by distributions, with a
// margin between the label of the greatest degree and the others, and differences that cost nothing up to a bound.
//
// The loss of a sample with label distribution d and prediction p is
//
//	max(0, ‖p - e_t‖₁ - ρ) + λ2 Σ_{c≠t} max(0, ρ - p_t + p_c) + λ3 max(0, Σ_{c≠t} |p_c - d_c| - r)
//
// where t is the label of the greatest degree, of equal degrees the lowest label, and e_t is 1 at t and 0 elsewhere.
// The bound r is the second greatest degree of the sample less the third greatest, or less 0 if there are two labels.
// Minimised is the mean over samples and the weight decay. The paper's text was not at hand: the authors' program gives
// the loss. It sums over samples: its weight of the decay is the number of samples times l2.
package ldlm

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/margin"
	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
)

// Name is the word that selects the algorithm in a spec.
const Name = "ldlm"

// New returns the algorithm.
func New() algorithms.Algorithm {
	return margin.Define(learner.Definition[Config]{
		Name: Name,
		About: algorithms.About{
			Class:   "LDLM",
			Summary: "maximum-entropy model for classification, with a label distribution margin",
			When:    "Use it if only the label with the largest probability counts: its K-L divergence is high.",
			Paper:   `Wang and Geng 2021, "Label Distribution Learning Machine"`,
		},
		Doc: "LDLM of Wang and Geng 2021: a maximum-entropy model for classification, with a margin and with differences " +
			"of degrees that cost nothing up to a bound",
		Settings: settings,
		Fill: func(c *Config, given param.Values, m *dataset.Manifest) {
			margin.Fill(&c.Fit, given, m)
		},
		StateVersion: 1,
	}, fit, func(c *Config) margin.Loss { return c.loss })
}

// Config holds the settings of a job, which settings describes.
type Config struct {
	maxent.Fit
	Lambda2 float64
	Lambda3 float64
	Rho     float64
}

func fit(c *Config) *maxent.Fit { return &c.Fit }

// settings lists what a spec may say, in the order of help texts.
var settings = margin.Unvalidated(margin.Table(fit,
	param.Float("lambda2", "weight of the margins", 0, 1e6, 0.1, func(c *Config) *float64 { return &c.Lambda2 }),
	param.Float("lambda3", "weight of the differences of all labels but the label with the largest degree", 0, 1e6, 1,
		func(c *Config) *float64 { return &c.Lambda3 }),
	param.Float("rho", "margin by which the probability of the label with the largest degree should exceed the others",
		1e-6, 1, 0.01, func(c *Config) *float64 { return &c.Rho }).InPaper()))

// loss is a margin.Loss.
func (c *Config) loss(slopes, p, d []float64, top int) (sum float64) {
	if by := margin.FromTop(p, top) - c.Rho; by > 0 {
		sum += by
		margin.AddFromTop(slopes, p, top)
	}
	sum += float64(c.Lambda2 * margin.Hinges(slopes, c.Lambda2, c.Rho, p, top))
	if by := margin.Distance(p, d, top) - bound(d, top); by > 0 {
		sum += float64(c.Lambda3 * by)
		margin.AddDistance(slopes, c.Lambda3, p, d, top)
	}
	return sum
}

// bound returns the second greatest of the degrees less the third greatest; a degree that does not exist is 0.
func bound(d []float64, top int) float64 {
	second, third := 0.0, 0.0
	for c, x := range d {
		switch {
		case c == top:
		case x > second:
			second, third = x, second
		case x > third:
			third = x
		}
	}
	return second - third
}
