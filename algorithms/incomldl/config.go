package incomldl

import (
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/algorithms/kit/simplex"
	"github.com/coppice-ldl/coppice/dataset"
)

// Name is the word that selects the algorithm in a spec.
const Name = "incomldl"

// Config holds the settings of a job, which settings describes.
type Config struct {
	Preset     string
	Scaling    string
	Bias       bool
	Lambda     float64
	Rho        float64
	Ridge      float64
	Iterations int
	Absolute   float64
	Relative   float64
}

// settings lists what a spec may say, in the order of help texts.
var settings = param.Table[Config]{
	param.Word("preset", "auto standardises dense features, and has a greater ridge; paper uses raw features",
		func(c *Config) *string { return &c.Preset }, param.Auto, param.Paper),
	scaling.Setting(func(c *Config) *string { return &c.Scaling }),
	param.Bool("bias", "give each label a bias", true, func(c *Config) *bool { return &c.Bias }).
		Preset(param.Paper, false),
	param.Float("lambda", "weight of the sum of the singular values of all predictions", 0, 1e6, 0.1,
		func(c *Config) *float64 { return &c.Lambda }),
	param.Float("rho", "weight of the constraints in a step of ADMM; it decides how fast the steps converge", 1e-9, 1e9,
		1,
		func(c *Config) *float64 { return &c.Rho }).InPaper(),
	param.Float("ridge", "added to the diagonal of the products of the features, as a fraction of its mean", 1e-14, 1e6,
		0.1, func(c *Config) *float64 { return &c.Ridge }).Preset(param.Paper, 1e-6),
	param.Int("iterations", "maximum number of steps of ADMM", 1, 10_000, 100,
		func(c *Config) *int { return &c.Iterations }).InPaper(),
	param.Float("absolute", "absolute tolerance of the primal and the dual residual, for the root mean square of a degree",
		0, 1, 1e-4, func(c *Config) *float64 { return &c.Absolute }).InPaper(),
	param.Float("relative", "relative tolerance of both residuals", 0, 1, 1e-2,
		func(c *Config) *float64 { return &c.Relative }).InPaper(),
}

// fill computes what depends on the data and was not given.
func (c *Config) fill(given param.Values, m *dataset.Manifest) {
	if c.Preset == param.Auto {
		param.StandIn(given, "scaling", &c.Scaling, scaling.Rule(m))
	}
}

// columns are what the function reads of a sample.
func (c *Config) columns(m *dataset.Manifest) simplex.Columns {
	return simplex.Columns{Features: m.Features, Bias: c.Bias}
}
