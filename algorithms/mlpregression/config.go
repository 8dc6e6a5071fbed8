package mlpregression

import (
	"slices"

	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/network"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/algorithms/kit/target"
	"github.com/coppice-ldl/coppice/dataset"
)

// Name is the word that selects the algorithm in a spec.
const Name = "mlp-regression"

// maxHidden bounds the hidden units, maxValues the length of Θ.
const (
	maxHidden = 1 << 16
	maxValues = 1 << 27
)

// Config holds the settings of a job, which settings describes.
type Config struct {
	Preset       string
	Hidden       int
	Scaling      string
	Alpha        float64
	BatchSize    int
	LearningRate float64
	Passes       int
	Tolerance    float64
	Patience     int
	Scale        target.Scale
	Initial      network.Initial
}

// The α of preset auto for features that are standardised, and of all others.
const (
	standardAlpha = 10
	rawAlpha      = 1e-4
)

// settings lists what a spec may say, in the order of help texts. The paper says nothing of its
// network but its error.
var settings = slices.Concat(param.Table[Config]{
	param.Word("preset", "auto adapts the defaults to the dataset; paper uses raw features", func(c *Config) *string {
		return &c.Preset
	}, param.Auto, param.Paper),
	param.Int("hidden", "number of ReLU units in the hidden layer", 1, maxHidden, 50, func(c *Config) *int {
		return &c.Hidden
	}),
	scaling.Setting(func(c *Config) *string { return &c.Scaling }),
	param.Float("alpha", "α: α/2 times the sum of the squared weights, biases excluded, is divided by batch_size and "+
		"added to the loss of a mini-batch", 0, 1e6, rawAlpha,
		func(c *Config) *float64 { return &c.Alpha }).Says("auto: 10 with scaling standard, else 1e-4; paper: 1e-4"),
	param.Int("batch_size", "number of samples in a mini-batch", 1, 1<<20, 32, func(c *Config) *int {
		return &c.BatchSize
	}),
	param.Float("learning_rate", "learning rate of Adam (β1 0.9, β2 0.999, ε 1e-8)", 1e-12, 1e6, 1e-3,
		func(c *Config) *float64 {
			return &c.LearningRate
		}),
	param.Int("passes", "maximum number of passes through the training samples", 1, 1e6, 200, func(c *Config) *int {
		return &c.Passes
	}),
	param.Float("tolerance", "amount by which the mean loss of a pass must fall below the lowest earlier loss to count "+
		"as an improvement", 0, 1e6, 1e-4,
		func(c *Config) *float64 { return &c.Tolerance }),
	param.Int("patience", "number of successive passes without an improvement of the training loss after which training "+
		"stops", 1, 1e9, 10, func(c *Config) *int {
		return &c.Patience
	}),
}, target.Settings(func(c *Config) *target.Scale {
	return &c.Scale
}), network.InitSettings(func(c *Config) *network.Initial { return &c.Initial }))

// fill computes what depends on the data or on other settings and was not given.
func (c *Config) fill(given param.Values, m *dataset.Manifest) {
	if c.Preset == param.Auto {
		param.StandIn(given, "scaling", &c.Scaling, scaling.Rule(m))
	}
	if !given.Has("alpha") && c.Preset == param.Auto && c.Scaling == scaling.Standard {
		c.Alpha = standardAlpha
	}
	c.Scale.Fill(given, m)
}

// fits refuses labels that are no scale, and a network whose parameters no partial could carry.
func (c *Config) fits(m *dataset.Manifest) error {
	if n := gradient.Parameters(newFunction(c, 0, m)); n > maxValues {
		return param.Errorf("hidden", "the network would have %d parameters (%d features, %d hidden units), at most %d are "+
			"possible",
			n, m.Features, c.Hidden, maxValues)
	}
	return c.Scale.Fits(m, Name)
}

// newFunction returns the network of a job.
func newFunction(c *Config, seed uint64, m *dataset.Manifest) *network.Network {
	return network.New(network.Plan{
		Sparse: m.Sparse, Scaled: c.Scaling != scaling.None, Seed: seed,
		Layers: network.Hidden(m.Features, c.Hidden, 1, network.ReLUUnits, network.Glorot),
	})
}

// descentSettings returns the course of training on so many rows: an interval is a pass.
func descentSettings(c *Config, rows uint64) gradient.Settings {
	pass := (rows + uint64(c.BatchSize) - 1) / uint64(c.BatchSize)
	return gradient.Settings{
		Rule: gradient.Rule{
			Adam: true, Rate: c.LearningRate, Momentum: 0.9, Decay: c.Alpha / float64(c.BatchSize), SpareBiases: true,
		},
		PlateauRule: gradient.PlateauRule{PlateauPatience: uint64(c.Patience), PlateauFall: c.Tolerance},
		Scaling:     c.Scaling, BatchSize: c.BatchSize, Steps: uint64(c.Passes) * pass, Interval: pass, Terms: 1,
	}
}

// modelNumbers is the bytes of a model's settings and target.
const modelNumbers = 4*5 + 8*2
