package winldl

import (
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/algorithms/kit/simplex"
	"github.com/coppice-ldl/coppice/dataset"
)

// Name is the word that selects the algorithm in a spec.
const Name = "winldl"

// Config holds the settings of a job, which settings describes.
type Config struct {
	Preset        string
	Scaling       string
	Bias          bool
	Rho           float64
	Ridge         float64
	RidgeFraction float64
	Iterations    int
	Absolute      float64
	Relative      float64
}

// settings lists what a spec may say, in the order of help texts.
var settings = param.Table[Config]{
	param.Word("preset", "auto standardises dense features, and has a greater ridge; paper uses raw features",
		func(c *Config) *string { return &c.Preset }, param.Auto, param.Paper),
	scaling.Setting(func(c *Config) *string { return &c.Scaling }),
	param.Bool("bias", "give each label a bias", true, func(c *Config) *bool { return &c.Bias }).
		Preset(param.Paper, false),
	param.Float("rho", "weight of the constraints in a step of ADMM; it decides how fast the steps converge", 1e-9, 1e9,
		2,
		func(c *Config) *float64 { return &c.Rho }),
	param.Float("ridge", "added to the diagonal of the products of the features", 1e-14, 1e12, 1e-5,
		func(c *Config) *float64 { return &c.Ridge }),
	param.Float("ridge_fraction", "added to the diagonal as well, as a fraction of the mean square of a sample: Σ x² of "+
		"its features, and 1 for the bias", 0, 1e6, 1,
		func(c *Config) *float64 { return &c.RidgeFraction }).Preset(param.Paper, 0),
	param.Int("iterations", "maximum number of steps of ADMM; T of the weights of missing degrees", 1, 1000, 100,
		func(c *Config) *int { return &c.Iterations }),
	param.Float("absolute", "absolute tolerance of the primal and the dual residual", 0, 1, 1e-4,
		func(c *Config) *float64 { return &c.Absolute }),
	param.Float("relative", "relative tolerance of both residuals", 0, 1, 1e-3,
		func(c *Config) *float64 { return &c.Relative }),
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

// blocks is how many variables, at most, carry the weights of all steps: a round may have 64.
const blocks = 32

// perBlock is the number of steps whose weights one variable carries.
func (c *Config) perBlock() int { return (c.Iterations + blocks - 1) / blocks }

// block returns the number of the block that has the weights of a step, which counts from 1, and their place in it.
func (c *Config) block(step uint64) (block uint16, place int) {
	at, n := int(step)-1, c.perBlock()
	return uint16(at / n), at % n
}

// fits refuses products of the features, or weights of all steps, that are too many.
func fits(c *Config, m *dataset.Manifest) error {
	if err := simplex.Fits(m); err != nil {
		return err
	}
	if n := int64(c.Iterations) * int64(m.Features+1) * int64(m.Labels); n > simplex.MaxProducts {
		return param.Errorf("iterations", "the weights of all steps would be %d numbers (%d steps, %d features, %d labels), "+
			"at most %d are possible", n, c.Iterations, m.Features, m.Labels, simplex.MaxProducts)
	}
	return nil
}
