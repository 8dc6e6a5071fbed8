// Package ldl4c is LDL4C of Wang and Geng 2019: a maximum-entropy model for classification by distributions, with an
// absolute loss weighted by entropy, and a margin between two probabilities.
//
// The loss of a sample with label distribution d and prediction p is (Eq. 6 of the paper)
//
//	H(d) ‖p - d‖₁ + c1 max(0, 1 - α/ρ),  α = p_t - max_{c≠t} p_c
//
// where H is the entropy in nats and t is the label of the greatest degree; of equal degrees it is the lowest label.
// Minimised is the mean over samples and the weight decay. The gradient follows from this objective. The gradient that
// the paper prints lacks the factor 1/ρ and the derivatives of a softmax by other scores. PyLDL, a public program,
// measures the margin to the label of the second greatest degree of d; here, as in the paper, it is the second greatest
// probability of p. The paper sums over samples: its C2 is the number of samples times l2.
//
// A sample with a single label has the entropy 0, and only its margin is in the loss. So ldl4c is no algorithm for
// labels that are classes.
package ldl4c

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/margin"
	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Name is the word that selects the algorithm in a spec.
const Name = "ldl4c"

// New returns the algorithm.
func New() algorithms.Algorithm {
	return margin.Define(learner.Definition[Config]{
		Name: Name,
		About: algorithms.About{
			Class:   "LDL4C",
			Summary: "maximum-entropy model for classification, with an absolute loss and a margin",
			When:    "Use it to compare with its paper if the label with the largest probability is all that counts.",
			Paper:   `Wang and Geng 2019, "Classification with Label Distribution Learning"`,
		},
		Doc: "LDL4C of Wang and Geng 2019: a maximum-entropy model for classification, with an absolute loss weighted by " +
			"entropy and a margin",
		Settings:     settings,
		StateVersion: 1,
	}, fit, func(c *Config) margin.Loss { return c.loss })
}

// Config holds the settings of a job, which settings describes.
type Config struct {
	maxent.Fit
	C1  float64
	Rho float64
}

func fit(c *Config) *maxent.Fit { return &c.Fit }

// settings lists what a spec may say, in the order of help texts.
var settings = margin.Table(fit,
	param.Float("c1", "weight of the margin", 0, 1e6, 0.01, func(c *Config) *float64 { return &c.C1 }),
	param.Float("rho", "margin by which the probability of the label with the largest degree should exceed the others",
		1e-6, 1, 0.1, func(c *Config) *float64 { return &c.Rho }))

// loss is a margin.Loss.
func (c *Config) loss(slopes, p, d []float64, top int) float64 {
	entropy := 0.0
	for _, x := range d {
		if x > 0 {
			entropy -= float64(x * num.Log(x))
		}
	}
	margin.AddDistance(slopes, entropy, p, d, -1)
	sum := float64(entropy * margin.Distance(p, d, -1))
	other := margin.Greatest(p, top)
	if other < 0 {
		return sum
	}
	if by := c.Rho - (p[top] - p[other]); by > 0 {
		weight := c.C1 / c.Rho
		sum += float64(weight * by)
		slopes[top] -= weight
		slopes[other] += weight
	}
	return sum
}
