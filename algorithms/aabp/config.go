package aabp

import (
	"slices"

	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/network"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
)

// Name is the word that selects the algorithm in a spec.
const Name = "aa-bp"

// The words that settings take.
const (
	lossKL      = "kl"
	lossSquared = "squared"

	unitLogistic = network.LogisticUnits
	unitReLU     = network.ReLUUnits
)

// maxHidden bounds the hidden units, maxValues the length of Θ.
const (
	maxHidden = 1 << 16
	maxValues = 1 << 27
)

// Config holds the settings of a job, which settings describes.
type Config struct {
	Preset             string
	Loss               string
	Hidden             int
	Units              string
	Scaling            string
	BatchSize          int
	LearningRate       float64
	WeightDecay        float64
	ValidationFraction float64
	ValidationSteps    int
	Patience           int
	Refit              bool
	Steps              int
	Initial            network.Initial
}

// settings lists what a spec may say, in the order of help texts. The source of preset paper
// does not say how its network was trained: its units, rate and steps are chosen here.
var settings = slices.Concat(param.Table[Config]{
	param.Word("preset", "auto adapts the defaults to the dataset and stops early; paper uses the squared error, raw "+
		"features and no early stopping",
		func(c *Config) *string { return &c.Preset }, param.Auto, param.Paper),
	param.Word("loss", "training loss: kl (K-L divergence) or squared (half the squared error of the probabilities)",
		func(c *Config) *string { return &c.Loss }, lossKL, lossSquared).Preset(param.Paper, lossSquared).InPaper(),
	param.Int("hidden", "number of units in the hidden layer", 1, maxHidden, 64, func(c *Config) *int {
		return &c.Hidden
	}),
	param.Word("units", "activation of the hidden units: logistic (initial weights uniform, Glorot and Bengio 2010) or "+
		"relu (initial weights normal, He et al. 2015)",
		func(c *Config) *string { return &c.Units }, unitLogistic, unitReLU),
	scaling.Setting(func(c *Config) *string { return &c.Scaling }),
	param.Int("batch_size", "number of samples in a mini-batch", 1, 1<<20, 64, func(c *Config) *int {
		return &c.BatchSize
	}),
	param.Float("learning_rate", "learning rate of Adam (β1 0.9, β2 0.999, ε 1e-8)", 1e-12, 1e6, 1e-3,
		func(c *Config) *float64 {
			return &c.LearningRate
		}),
	param.Float("weight_decay", "weight decay of all weights, biases excluded: weight_decay·W is added to the gradient", 0,
		1, 0,
		func(c *Config) *float64 { return &c.WeightDecay }),
	param.Float("validation_fraction", "fraction of the training samples kept for validation and early stopping, at "+
		"least 20 samples; 0: no early stopping", 0, 0.5, 0.1,
		func(c *Config) *float64 { return &c.ValidationFraction }).Preset(param.Paper, 0),
	param.Int("validation_steps", "number of steps between two validations", 1, 1e6, mostValidationSteps,
		func(c *Config) *int {
			return &c.ValidationSteps
		}).
		Says("number of samples / batch_size (about one pass over the samples), at least 10 and at most 100"),
	param.Int("patience", "number of validations without improvement after which training stops", 1, 1e9, 10,
		func(c *Config) *int {
			return &c.Patience
		}),
	param.Bool("refit", "train again on all training samples, validation samples included, for the best number of steps",
		true,
		func(c *Config) *bool { return &c.Refit }).Preset(param.Paper, false),
	param.Int("steps", "maximum number of gradient steps; early stopping may end training earlier", 1, 1<<40, 25_000,
		func(c *Config) *int {
			return &c.Steps
		}).
		Preset(param.Paper, 5000),
}, network.InitSettings(func(c *Config) *network.Initial { return &c.Initial }))

// What presets and defaults follow from.
const (
	validationMin        = 20 // least number of rows that early stopping validates on
	leastValidationSteps = 10
	mostValidationSteps  = 100
)

// fill computes what depends on the data or on other settings and was not given.
func (c *Config) fill(given param.Values, m *dataset.Manifest) {
	if c.Preset == param.Auto {
		param.StandIn(given, "scaling", &c.Scaling, scaling.Rule(m))
	}
	if !given.Has("validation_steps") && c.BatchSize >= 1 {
		c.ValidationSteps = min(max(leastValidationSteps, m.Rows/c.BatchSize), mostValidationSteps)
	}
	if !given.Has("refit") && c.ValidationFraction == 0 {
		c.Refit = false
	}
}

// check returns a *param.Error for the first setting that contradicts another.
func (c *Config) check() error {
	if c.Refit && c.ValidationFraction == 0 {
		return param.Errorf("refit", "needs a validation_fraction above 0: validation finds the number of steps of the "+
			"second training")
	}
	return c.Initial.Check()
}

// checkSize refuses a network whose parameters no partial could carry.
func checkSize(c *Config, m *dataset.Manifest) error {
	if n := gradient.Parameters(newFunction(c, 0, m)); n > maxValues {
		return param.Errorf("hidden", "the network would have %d parameters (%d features, %d hidden units, %d labels), at "+
			"most %d are possible",
			n, m.Features, c.Hidden, m.Labels, maxValues)
	}
	return nil
}

// newFunction returns the network of a job.
func newFunction(c *Config, seed uint64, m *dataset.Manifest) *network.Network {
	start := network.Glorot
	if c.Units == unitReLU {
		start = network.He
	}
	return network.New(network.Plan{
		Sparse: m.Sparse, Scaled: c.Scaling != scaling.None, Seed: seed,
		Layers: network.Hidden(m.Features, c.Hidden, m.Labels, c.Units, start),
	})
}

// descentSettings returns the course of training.
func descentSettings(c *Config) gradient.Settings {
	return gradient.Settings{
		Rule:     gradient.Rule{Adam: true, Rate: c.LearningRate, Momentum: 0.9, Decay: c.WeightDecay, SpareBiases: true},
		StopRule: gradient.StopRule{Validates: c.ValidationFraction > 0, Patience: uint64(c.Patience)},
		Scaling:  c.Scaling, BatchSize: c.BatchSize, Steps: uint64(c.Steps), Interval: uint64(c.ValidationSteps),
		Refit: c.Refit, Terms: 1,
	}
}

// modelSettings is the length of a model's tensor of settings.
const modelSettings = 6
