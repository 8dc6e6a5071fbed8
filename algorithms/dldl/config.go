package dldl

import (
	"slices"

	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/network"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
)

// Name is the word that selects the algorithm in a spec.
const Name = "dldl"

// The words of the setting optimizer.
const (
	optimizerAdam = "adam"
	optimizerSGD  = "sgd"
)

// Config holds the settings of a job, which settings describes.
type Config struct {
	Preset             string // that selected defaults; of a job none, as it is not written
	Network            network.Config
	Bias               bool
	Scaling            string
	BatchSize          int
	Optimizer          string
	LearningRate       float64
	LearningRateStep   int
	LearningRateDecay  float64
	Warmup             int
	Cosine             bool
	Momentum           float64
	WeightDecay        float64
	ValidationFraction float64
	ValidationSteps    int
	Patience           int
	Refit              bool
	Steps              int
}

// settings lists what a spec may say, in the order of help texts. Preset paper is the training from
// scratch of the public code of Gao et al.: 20 passes, in which the rate falls evenly in its logarithm,
// by a factor of 10^(-2/59) a pass.
var settings = slices.Concat(
	param.Table[Config]{
		param.Word("preset", "auto adapts the defaults to the dataset and stops early; paper uses the solver of the "+
			"authors' public code: SGD for 20 passes through the samples",
			func(c *Config) *string { return &c.Preset }, param.Auto, param.Paper).NotWritten(),
	},
	network.Settings(func(c *Config) *network.Config { return &c.Network }, network.MLP, network.Conv),
	param.Table[Config]{
		param.Bool("bias", "give the layers bias terms", true, func(c *Config) *bool { return &c.Bias }),
		scaling.Setting(func(c *Config) *string { return &c.Scaling }),
		param.Int("batch_size", "number of samples in a mini-batch", 1, 1<<20, 64, func(c *Config) *int {
			return &c.BatchSize
		}).Preset(param.Paper, 128).
			Says("auto: 64, with features mlp and at least 20,000 samples 128; paper: 128"),
		param.Word("optimizer", "adam (β2 0.999, ε 1e-8) or sgd (with momentum)", func(c *Config) *string {
			return &c.Optimizer
		}, optimizerAdam, optimizerSGD).
			Preset(param.Paper, optimizerSGD),
		param.Float("learning_rate", "initial learning rate", 1e-12, 1e6, adamRate, func(c *Config) *float64 {
			return &c.LearningRate
		}).
			Preset(param.Paper, paperRate).Says("auto: 0.001, with features mlp and at least 20,000 samples 0.02, with sgd " +
			"0.1; paper: 0.01, with adam 0.001"),
		param.Int("learning_rate_step", "number of steps between two reductions of the learning rate by "+
			"learning_rate_decay; 0: no reductions", 0, 1<<40, 0,
			func(c *Config) *int { return &c.LearningRateStep }).Says("auto: 0; paper: the steps of one pass over the samples"),
		param.Float("learning_rate_decay", "factor that multiplies the learning rate every learning_rate_step steps",
			1e-6, 1, 0.5,
			func(c *Config) *float64 { return &c.LearningRateDecay }).Preset(param.Paper, paperFall),
		param.Int("warmup", "number of first steps over which the learning rate grows linearly from near 0 to its full "+
			"value; 0: no warm-up", 0, 1<<40, 0, func(c *Config) *int {
			return &c.Warmup
		}),
		param.Bool("cosine", "lower the learning rate to 0 over all steps, along half a cosine", false,
			func(c *Config) *bool {
				return &c.Cosine
			}).
			Says("auto: true with features mlp, at least 20,000 samples and learning_rate_step 0, else false; paper: false"),
		param.Float("momentum", "β1 of adam, or momentum of sgd", 0, 0.9999, 0.9, func(c *Config) *float64 {
			return &c.Momentum
		}),
		param.Float("weight_decay",
			"weight decay of all parameters, biases included: weight_decay·Θ is added to the gradient", 0, 1, 1e-3,
			func(c *Config) *float64 { return &c.WeightDecay }).Preset(param.Paper, 5e-4).
			Says("auto: 0.001, with features mlp and at least 20,000 samples 0; paper: 0.0005"),
		param.Float("validation_fraction", "fraction of the training samples kept for validation and early stopping, at "+
			"least 20 samples; 0: no early stopping", 0, 0.5, 0.1,
			func(c *Config) *float64 { return &c.ValidationFraction }).Preset(param.Paper, 0).
			Says("auto: 0.1, with features mlp and at least 20,000 samples at most 10,000 samples; paper: 0"),
		param.Int("validation_steps", "number of steps between two validations", 1, 1e6, 50, func(c *Config) *int {
			return &c.ValidationSteps
		}).
			Says("50; auto with features mlp and at least 20,000 samples: 500"),
		param.Int("patience", "number of validations without improvement after which training stops", 1, 1e9, 15,
			func(c *Config) *int {
				return &c.Patience
			}).
			Says("15; auto with features mlp and at least 20,000 samples: 1000"),
		param.Bool("refit", "train again on all training samples, validation samples included, for the best number of steps",
			true, func(c *Config) *bool {
				return &c.Refit
			}).
			Preset(param.Paper, false).Says("auto: true, or false if validation_fraction is 0, or with features mlp and at " +
			"least 20,000 samples; paper: false"),
		param.Int("steps", "maximum number of gradient steps; early stopping may end training earlier", 1, 1<<40, 25_000,
			func(c *Config) *int {
				return &c.Steps
			}).
			Says("auto: 25000, with features mlp and at least 20,000 samples number of samples / 8, but within 10000 to " +
				"40000; paper: the steps of 20 passes through the samples"),
	})

// The learning rates where none is given.
const (
	adamRate  = 0.001
	sgdRate   = 0.1
	paperRate = 0.01
)

// Preset paper trains so many passes through the rows, and after each the rate falls by a factor.
const (
	paperPasses = 20
	paperFall   = 0.925
)

// validationMin is the least number of rows that early stopping validates on.
const validationMin = 20

// fill computes what depends on the data or on other settings and was not given.
func (c *Config) fill(given param.Values, m *dataset.Manifest) {
	c.Network.Fill(given, m)
	if c.Preset == param.Paper {
		pass := (m.Rows + c.BatchSize - 1) / max(1, c.BatchSize)
		param.StandIn(given, "learning_rate_step", &c.LearningRateStep, pass)
		param.StandIn(given, "steps", &c.Steps, paperPasses*pass)
		param.StandIn(given, "scaling", &c.Scaling, scaling.None)
		if c.Optimizer == optimizerAdam {
			param.StandIn(given, "learning_rate", &c.LearningRate, adamRate)
		}
		return
	}
	param.StandIn(given, "scaling", &c.Scaling, scaling.Rule(m))
	if c.Optimizer == optimizerSGD {
		param.StandIn(given, "learning_rate", &c.LearningRate, sgdRate)
	}
	if m.Rows >= manyRows && c.Network.Features == network.MLP {
		c.fillMany(given, m)
	}
	if c.ValidationFraction == 0 {
		param.StandIn(given, "refit", &c.Refit, false)
	}
}

// What preset auto has with manyRows or more. The learning rate falls to 0 over all steps, and no validation ends
// training.
const (
	manyRows            = 20_000
	manyBatch           = 128
	manyRate            = 0.02 // of adam
	manyPatience        = 1000
	manyValidationSteps = 500
	mostValidation      = 10_000 // rows
	rowsPerStep         = 8
	leastSteps          = 10_000
	mostSteps           = 40_000
)

// fillMany sets what preset auto has with many rows, and was not given.
func (c *Config) fillMany(given param.Values, m *dataset.Manifest) {
	param.StandIn(given, "batch_size", &c.BatchSize, manyBatch)
	if c.Optimizer == optimizerAdam {
		param.StandIn(given, "learning_rate", &c.LearningRate, manyRate)
	}
	if c.LearningRateStep == 0 {
		param.StandIn(given, "cosine", &c.Cosine, true)
	}
	param.StandIn(given, "dropout", &c.Network.Dropout, 0)
	param.StandIn(given, "weight_decay", &c.WeightDecay, 0)
	param.StandIn(given, "steps", &c.Steps, min(max(leastSteps, m.Rows/rowsPerStep), mostSteps))
	param.StandIn(given, "validation_steps", &c.ValidationSteps, manyValidationSteps)
	param.StandIn(given, "patience", &c.Patience, manyPatience)
	param.StandIn(given, "refit", &c.Refit, false)
	param.StandIn(given, "validation_fraction", &c.ValidationFraction,
		min(c.ValidationFraction, mostValidation/float64(m.Rows)))
}

// check returns a *param.Error for the first setting that contradicts another.
func (c *Config) check() error {
	if c.Refit && c.ValidationFraction == 0 {
		return param.Errorf("refit", "needs a validation_fraction above 0: validation finds the number of steps of the "+
			"second training")
	}
	return c.Network.Check()
}

// fits refuses a network that does not go with the data.
func fits(c *Config, m *dataset.Manifest) error { return c.Network.Fits(m, c.Bias, output(m)) }

// output is the last layer: it starts small, so that the first prediction is nearly uniform.
func output(m *dataset.Manifest) network.Output {
	return network.Output{Units: m.Labels, Start: network.Small}
}

// newFunction returns the network of a job.
func newFunction(c *Config, seed uint64, m *dataset.Manifest) *network.Network {
	return network.New(network.Plan{
		Sparse: m.Sparse, Scaled: c.Scaling != scaling.None, Seed: seed, Layers: c.Network.Layers(m.Features, c.Bias,
			output(m)),
	})
}

// descentSettings returns the course of training.
func descentSettings(c *Config, f *network.Network) gradient.Settings {
	set := gradient.Settings{
		Rule: gradient.Rule{
			Adam: c.Optimizer == optimizerAdam, Rate: c.LearningRate, RateStep: uint64(c.LearningRateStep),
			RateDecay: c.LearningRateDecay,
			Warmup:    uint64(c.Warmup), Momentum: c.Momentum, Decay: c.WeightDecay, Factors: c.Network.Factors(f.Layers),
		},
		StopRule: gradient.StopRule{Validates: c.ValidationFraction > 0, Patience: uint64(c.Patience)},
		Scaling:  c.Scaling, BatchSize: c.BatchSize, Steps: uint64(c.Steps), Interval: uint64(c.ValidationSteps),
		Refit: c.Refit, Terms: 1,
	}
	if c.Cosine {
		set.Cosine = set.Steps
	}
	return set
}

// modelSettings is the length of a model's tensor of settings.
const modelSettings = 4
