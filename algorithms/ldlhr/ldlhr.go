// Package ldlhr is LDL-HR of Wang and Geng 2021: a maximum-entropy model for classification by distributions, whose
// greatest probability is to be at the label with the greatest degree, by a margin.
//
// The loss of a sample with label distribution d and prediction p is (Eq. 10 of the paper)
//
//	‖p - e_t‖₁ + (λ2/ρ) Σ_{c≠t} max(0, ρ - p_t + p_c) + λ3 Σ_{c≠t} |p_c - d_c|
//
// where t is the label of the greatest degree, of equal degrees the lowest label, and e_t is 1 at t and 0 elsewhere.
// Minimised is the mean over samples and the weight decay. The authors' program differs from the paper: it omits 1/ρ,
// and its last sum has label t, with the target 0. This package follows the paper. The paper sums over samples: its
// weight of the decay is the number of samples times l2.
package ldlhr

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/margin"
	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
)

// Name is the word that selects the algorithm in a spec.
const Name = "ldl-hr"

// New returns the algorithm.
func New() algorithms.Algorithm {
	return margin.Define(learner.Definition[Config]{
		Name: Name,
		About: algorithms.About{
			Class:   "LDLHR",
			Summary: "maximum-entropy model for classification, with margins to the highest degree",
			When:    "Use it if only the label with the largest probability counts: its K-L divergence is high.",
			Paper:   `Wang and Geng 2021, "Learn the Highest Label and Rest Label Description Degrees"`,
		},
		Doc: "LDL-HR of Wang and Geng 2021: a maximum-entropy model for classification, with a margin between the label " +
			"with the highest degree and the other labels",
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
	param.Float("lambda2", "weight of the margins", 0, 1e6, 1e-3, func(c *Config) *float64 { return &c.Lambda2 }),
	param.Float("lambda3", "weight of the differences of all labels but the label with the largest degree", 0, 1e6, 1,
		func(c *Config) *float64 { return &c.Lambda3 }),
	param.Float("rho", "margin by which the probability of the label with the largest degree should exceed the others",
		1e-6, 1, 0.01, func(c *Config) *float64 { return &c.Rho }).InPaper()))

// loss is a margin.Loss.
func (c *Config) loss(slopes, p, d []float64, top int) float64 {
	weight := c.Lambda2 / c.Rho
	sum := margin.FromTop(p, top)
	margin.AddFromTop(slopes, p, top)
	sum += float64(weight * margin.Hinges(slopes, weight, c.Rho, p, top))
	sum += float64(c.Lambda3 * margin.Distance(p, d, top))
	margin.AddDistance(slopes, c.Lambda3, p, d, top)
	return sum
}
