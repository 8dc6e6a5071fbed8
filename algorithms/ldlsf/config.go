package ldlsf

import (
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/algorithms/kit/simplex"
	"github.com/coppice-ldl/coppice/dataset"
)

// Name is the word that selects the algorithm in a spec.
const Name = "ldlsf"

// Config holds the settings of a job, which settings describes.
type Config struct {
	Preset     string
	Scaling    string
	Lambda1    float64
	Lambda2    float64
	Lambda3    float64
	Rho        float64
	Iterations int
}

// settings lists what a spec may say, in the order of help texts.
var settings = param.Table[Config]{
	param.Word("preset", "auto standardises dense features, and has greater penalties; paper uses raw features",
		func(c *Config) *string {
			return &c.Preset
		}, param.Auto, param.Paper),
	scaling.Setting(func(c *Config) *string { return &c.Scaling }),
	param.Float("lambda1", "weight of Σ|W1|, which leaves each label few features of its own", 0, 1e6, 1,
		func(c *Config) *float64 {
			return &c.Lambda1
		}).Preset(param.Paper, 1e-4),
	param.Float("lambda2", "weight of the lengths of the rows of W2, which leaves few features that all labels share", 0,
		1e6, 2, func(c *Config) *float64 {
			return &c.Lambda2
		}).Preset(param.Paper, 1e-2),
	param.Float("lambda3", "weight of the differences between the predictions of correlated labels", 0, 0.1, 1e-3,
		func(c *Config) *float64 {
			return &c.Lambda3
		}),
	param.Float("rho", "weight of the constraints in a step of ADMM; it decides how fast the steps converge", 1e-9, 1e9, 1,
		func(c *Config) *float64 {
			return &c.Rho
		}).Preset(param.Paper, 1e-3),
	param.Int("iterations", "number of steps of ADMM", 1, 1000, 100, func(c *Config) *int {
		return &c.Iterations
	}),
}

// fill computes what depends on the data and was not given.
func (c *Config) fill(given param.Values, m *dataset.Manifest) {
	if c.Preset == param.Auto {
		param.StandIn(given, "scaling", &c.Scaling, scaling.Rule(m))
	}
}

// The bounds of the sums of a round, and of the factors of all labels.
const (
	maxSums    = simplex.MaxProducts
	maxFactors = 1 << 26
)

// fits refuses too many features or labels.
func fits(m *dataset.Manifest) error {
	q := int64(m.Features + 1)
	if n := sumsOf(m.Features, m.Labels); n > maxSums {
		return fmt.Errorf("the products of features and labels would hold %d values (%d features, %d labels), at most %d "+
			"are possible", n, m.Features, m.Labels, maxSums)
	}
	if n := int64(m.Labels) * q * q; n > maxFactors {
		return fmt.Errorf("the factors would hold %d values (%d labels × (%d features + 1)²), at most %d are possible",
			n, m.Labels, m.Features, maxFactors)
	}
	return nil
}

// sumsOf returns how many values the round sums: the products of features and of labels.
func sumsOf(features, labels int) int64 {
	q, n := int64(features+1), int64(labels)
	return q*(q+1)/2 + q*n + n*(n+1)/2
}
