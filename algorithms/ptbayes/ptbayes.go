// Package ptbayes is PT-Bayes of Geng 2016: problem transformation, and a naive Bayes classifier with normal
// distributions.
//
// A sample with the label distribution d becomes one sample of each label c, with the weight d_c, times the weight of
// the sample if it has one. With sums over samples,
//
//	π_c = Σ d_c / N,  μ_ck = Σ d_c x_k / Σ d_c,  σ²_ck = Σ d_c (x_k - μ_ck)² / Σ d_c + ε·V
//	p_c ∝ π_c Π_k N(x_k; μ_ck, σ²_ck)
//
// where V is the greatest variance of all features. The product is a sum of logarithms. A label
// without a degree above 0 gets p_c = 0.
//
// The sums are of the samples alone: two rounds compute them, the second one around the means of the first, and shards
// need no state. Early stopping does not occur. Instead, validation chooses ε, if it is not given: one round compares
// seven values, and then two rounds compute the sums again, validation samples included.
//
// Geng's toolbox draws N·C of the weighted samples with replacement. Preset paper does this without an order: a sample
// of label c is drawn as often as a Poisson number with mean C·d_c says, which the seed and the sample's number decide.
// The weight of the sample is a factor of that number.
package ptbayes

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// New returns the algorithm.
func New() algorithms.Algorithm {
	return learner.Define(learner.Definition[Config]{
		Name: Name,
		About: algorithms.About{
			Class:   "PTBayes",
			Summary: "naive Bayes on weighted samples",
			When:    "Use it as a baseline of papers; it takes no time, and is seldom good.",
			Paper:   `Geng 2016, "Label Distribution Learning"`,
		},
		Doc: "PT-Bayes of Geng 2016: a naive Bayes classifier with normal distributions, in which each sample " +
			"counts for every label by its degree",
		Predicts: algorithms.Distribution,
		Settings: settings,
		Fill: func(c *Config, given param.Values, _ *dataset.Manifest) {
			if c.Smoothing > 0 {
				param.StandIn(given, "validation_fraction", &c.ValidationFraction, 0)
			}
		},
		Check: func(c *Config) error {
			if c.Smoothing == 0 && c.ValidationFraction == 0 {
				return param.Errorf("smoothing", "must be above 0 without validation samples, which choose it")
			}
			return nil
		},
		Fits: func(c *Config, m *dataset.Manifest) error {
			if m.Validation != nil && c.Smoothing > 0 && c.ValidationFraction > 0 {
				return param.Errorf("smoothing", "is given, so the samples of {validation} would choose nothing; omit one of "+
					"the two")
			}
			return fits(m)
		},
		Validation: func(c *Config) (share float64, least int) { return c.ValidationFraction, validationMin },
		Trainer: func(j *learner.Job[Config]) (learner.Trainer, error) {
			return newTrainer(j.Config, j.Manifest), nil
		},
		StateVersion: 1,
		Kernel: func(j *learner.Job[Config]) (round.Kernel, error) {
			return &kernel{cfg: *j.Config, features: j.Manifest.Features, labels: j.Manifest.Labels,
				key: num.NewKey(j.Seed, "pt-bayes/draw")}, nil
		},
		Model: learner.Decoder((*model).tensors),
		Memory: func(_ *Config, m *dataset.Manifest) algorithms.Footprint {
			n := 8 * int64(momentsOf(m.Features, m.Labels).size())
			return algorithms.Footprint{State: n + 128, Model: n + 64, Node: n, Nodes: int64(len(m.Shards))}
		},
	})
}
