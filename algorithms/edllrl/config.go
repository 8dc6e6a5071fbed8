package edllrl

import (
	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
)

// Name is the word that selects the algorithm in a spec.
const Name = "edl-lrl"

// Config holds the settings of a job, which settings describes.
type Config struct {
	Preset     string
	Bias       bool
	Scaling    string
	L2         float64
	Lambda     float64
	Rho        float64
	Clusters   int
	Steps      int
	Iterations int
}

// settings lists what a spec may say, in the order of help texts.
var settings = param.Table[Config]{
	param.Word("preset", "auto standardises dense features, and has a bias; paper uses raw features",
		func(c *Config) *string { return &c.Preset }, param.Auto, param.Paper),
	param.Bool("bias", "give each label a bias", true, func(c *Config) *bool {
		return &c.Bias
	}).Preset(param.Paper, false),
	scaling.Setting(func(c *Config) *string { return &c.Scaling }),
	param.Float("l2", "weight decay: ½·l2·‖W‖² is added to the loss; W excludes the biases", 0, 1e6, usualRaw,
		func(c *Config) *float64 { return &c.L2 }).Preset(param.Paper, 1e-6).
		Says("auto: 0.03 if features are scaled, else 1e-4; paper: 1e-6"),
	param.Float("lambda", "weight of the trace norms of the predictions of each group, in a sum over all samples", 0, 1e6,
		0.1, func(c *Config) *float64 { return &c.Lambda }),
	param.Float("rho", "weight of the constraints in a step of ADMM; it decides how fast the steps converge", 1e-6, 1e6, 1,
		func(c *Config) *float64 { return &c.Rho }),
	param.Int("clusters", "number of groups of samples, by k-means of the label distributions", 1, 100, 5,
		func(c *Config) *int { return &c.Clusters }).InPaper(),
	param.Int("steps", "number of steps of ADMM", 1, 1000, 20, func(c *Config) *int { return &c.Steps }),
	param.Int("iterations", "maximum number of L-BFGS iterations of a step", 1, 10_000, 20, func(c *Config) *int {
		return &c.Iterations
	}),
}

// The weight decays of preset auto: standardised features have larger weights' worth of noise than raw ones.
const (
	usualScaled = 0.03
	usualRaw    = 1e-4
)

// fill computes what depends on the data and was not given.
func (c *Config) fill(given param.Values, m *dataset.Manifest) {
	if c.Preset != param.Auto {
		return
	}
	param.StandIn(given, "scaling", &c.Scaling, scaling.Rule(m))
	if c.Scaling != scaling.None {
		param.StandIn(given, "l2", &c.L2, usualScaled)
	}
}

// The bounds of the weights and matrices of all steps, and of the sums of products of labels.
const (
	maxHistory  = 1 << 26
	maxProducts = 1 << 24
)

// stepValues is the number of values of a step that the trainer keeps: weights, then T of each group.
func (c *Config) stepValues(m *dataset.Manifest) int64 {
	return int64(maxent.Evaluation(m.Features, m.Labels)) + int64(c.Clusters)*int64(m.Labels)*int64(m.Labels)
}

// fits refuses too many features or labels.
func (c *Config) fits(m *dataset.Manifest) error {
	if _, err := maxent.Size(m); err != nil {
		return err
	}
	if n := products(c.Clusters, m.Labels); n > maxProducts {
		return param.Errorf("clusters", "the products of labels of %d groups would hold %d values, at most %d are possible",
			c.Clusters, n, maxProducts)
	}
	if n := int64(c.Steps) * c.stepValues(m); n > maxHistory {
		return param.Errorf("steps", "the weights of %d steps would hold %d values, at most %d are possible: use fewer steps",
			c.Steps, n, maxHistory)
	}
	return nil
}

// products is the number of values of the sums of products of labels.
func products(groups, labels int) int64 { return int64(groups) * int64(labels) * int64(labels+1) / 2 }
