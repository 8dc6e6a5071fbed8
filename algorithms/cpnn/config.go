package cpnn

import (
	"github.com/coppice-ldl/coppice/algorithms/kit/fullbatch"
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
)

// Name is the word that selects the algorithm in a spec.
const Name = "cpnn"

// The words that settings take.
const (
	inputOneHot = "one-hot"
	inputNumber = "number"

	initScaled = "scaled"
	initHalf   = "half"
)

// maxHidden bounds the hidden units, maxValues the parameters.
const (
	maxHidden = 1 << 16
	maxValues = 1 << 26
)

// The bounds and the factors of Rprop's steps: those of the method's public implementations.
const (
	leastStep = 0.0024787521766663585 // exp(-6)
	mostStep  = 50
	grow      = 1.2
	shrink    = 0.5
)

// Config holds the settings of a job, which settings describes.
type Config struct {
	Preset             string
	LabelInput         string
	Hidden             int
	Init               string
	Scaling            string
	FirstStep          float64
	Steps              int
	ValidationFraction float64
	ValidationSteps    int
	Patience           int
}

// settings lists what a spec may say, in the order of help texts. The defaults of preset paper are
// those of the method's public implementations.
var settings = param.Table[Config]{
	param.Word("preset", "auto adapts the defaults to the dataset and stops early; paper uses raw features, the initial "+
		"weights of public implementations and no early stopping",
		func(c *Config) *string { return &c.Preset }, param.Auto, param.Paper),
	param.Word("label_input", "how a label is given to the network: one-hot, or as a number (for ordered labels)",
		func(c *Config) *string {
			return &c.LabelInput
		}, inputOneHot, inputNumber).Says("number if the labels are numeric, else one-hot"),
	param.Int("hidden", "number of logistic units in the hidden layer", 1, maxHidden, 50, func(c *Config) *int {
		return &c.Hidden
	}),
	param.Word("init", "initial weights: half (uniform within ±1/2) or scaled (weights of features uniform within "+
		"±1/sqrt(features), all others as with half)",
		func(c *Config) *string { return &c.Init }, initScaled, initHalf).Preset(param.Paper, initHalf),
	scaling.Setting(func(c *Config) *string { return &c.Scaling }),
	param.Float("first_step", "Δ₀: initial step size of Rprop for each weight; later step sizes are from exp(-6) to 50",
		leastStep, mostStep, 0.01,
		func(c *Config) *float64 { return &c.FirstStep }).Preset(param.Paper, 0.1),
	param.Int("steps", "maximum number of Rprop steps; early stopping may end training earlier", 1, 1<<40, 400,
		func(c *Config) *int {
			return &c.Steps
		}),
	param.Float("validation_fraction", "fraction of the training samples kept for validation and early stopping, at "+
		"least 20 samples; 0: no early stopping", 0, 0.5, 0.1,
		func(c *Config) *float64 { return &c.ValidationFraction }).Preset(param.Paper, 0),
	param.Int("validation_steps", "number of steps between two validations", 1, 1<<40, 2, func(c *Config) *int {
		return &c.ValidationSteps
	}).
		Preset(param.Paper, 10),
	param.Int("patience", "number of validations without improvement after which training stops", 1, 1e9, 5,
		func(c *Config) *int {
			return &c.Patience
		}),
}

// What presets follow from.
const (
	validationMin = 20 // least number of rows that early stopping validates on
)

// fill computes what depends on the data and was not given.
func (c *Config) fill(given param.Values, m *dataset.Manifest) {
	if c.Preset == param.Auto {
		param.StandIn(given, "scaling", &c.Scaling, scaling.Rule(m))
	}
	if !given.Has("label_input") && m.LabelType.Scale != nil {
		c.LabelInput = inputNumber
	}
}

// checkSize refuses a network with more parameters than a partial can carry.
func checkSize(c *Config, m *dataset.Manifest) error {
	if z := sizesOf(c, m); z.values() > maxValues {
		return param.Errorf("hidden", "the network would have %d parameters (%d features, %d hidden units, %d labels), at "+
			"most %d are possible",
			z.values(), z.features, z.hidden, z.labels, maxValues)
	}
	return nil
}

// sizes are the numbers that shape a network.
type sizes struct {
	features, labels, hidden int
	number                   bool // labels are read by their numbers
}

func sizesOf(c *Config, m *dataset.Manifest) sizes {
	return sizes{features: m.Features, labels: m.Labels, hidden: c.Hidden, number: c.LabelInput == inputNumber}
}

// inputs returns how many inputs a label has.
func (z *sizes) inputs() int {
	if z.number {
		return 1
	}
	return z.labels
}

// values returns the number of parameters.
func (z *sizes) values() int { return (z.features + z.inputs() + 2) * z.hidden }

// weights are the parts of a vector of parameters, in this order; each row has a value for every
// hidden unit.
type weights struct {
	features []float64 // W₁: features×hidden
	labels   []float64 // of the label's inputs: inputs×hidden
	bias     []float64 // b₁: hidden
	output   []float64 // w₂: hidden
}

// split returns the parts of a vector like the parameters.
func (z *sizes) split(v []float64) weights {
	a := z.features * z.hidden
	b := a + z.inputs()*z.hidden
	return weights{features: v[:a:a], labels: v[a:b:b], bias: v[b : b+z.hidden : b+z.hidden], output: v[b+z.hidden:]}
}

// numberOf returns the number of label c, from 0 to 1.
func (z *sizes) numberOf(c int) float64 { return float64(c) / float64(max(1, z.labels-1)) }

// trainingSettings returns the course of training.
func trainingSettings(c *Config) fullbatch.Settings {
	return fullbatch.Settings{
		StopRule: gradient.StopRule{Validates: c.ValidationFraction > 0, Patience: uint64(c.Patience)},
		Scaling:  c.Scaling, Steps: uint64(c.Steps), Interval: uint64(c.ValidationSteps),
	}
}
