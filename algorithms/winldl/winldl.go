// Package winldl is WInLDL of Li and Chen 2024, "Incomplete Label Distribution Learning by Weights": a linear function
// without a penalty, whose weighted errors replace the penalties of other algorithms for incomplete labels.
//
// With a row x_i for each sample (its last value is 1, for a bias) and its degrees D, W minimises ½Σ Q²(XW - Y)², and the
// rows of XW are distributions. Where a degree is known, Y is the degree d, and Q is 2^(1-d). Where it is missing, Y is
// XW, and Q is (1 + t/T)^m in step t of T, where m is the mean of the known degrees of the label. A step of ADMM is
//
//	W = (XᵀX + ridge·I)⁻¹ Xᵀ(Z - Λ/ρ)
//	Z = the nearest distributions to (ρXW + Λ + Q²Y)/(Q² + ρ),  Λ ← Λ + ρ (XW - Z)
//
// and begins with Λ = 0 and Z = D, or m where a degree is missing. The text of the paper was not at hand: its abstract and
// PyLDL, a public program, give the steps. PyLDL begins with Z = 1, and counts a known 0 as missing in m.
//
// Z and Λ have a row for each sample. A worker keeps them for the tasks that it computed. It computes them again from the
// beginning if another worker computed the last step: a round carries W of each step so far. So the bits do not depend on
// who computed a step. The prediction is the nearest point of the simplex to xW; zeros among its probabilities make a high
// K-L divergence. There are no validation samples.
package winldl

import (
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/algorithms/kit/simplex"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// Name is the word that selects the algorithm in a spec.
const Name = "winldl"

// New returns the algorithm.
func New() algorithms.Algorithm {
	return learner.Define(learner.Definition[Config]{
		Name: Name,
		About: algorithms.About{
			Class:   "WInLDL",
			Summary: "linear function with weighted errors, for incomplete labels",
			When:    "Use it if most degrees are missing and the Chebyshev distance counts.",
			Paper:   `Li and Chen 2024, "Incomplete Label Distribution Learning by Weights"`,
		},
		Doc:        "WInLDL of Li and Chen 2024: a linear function by weighted least squares, without a penalty",
		Predicts:   algorithms.Distribution,
		Incomplete: true,
		Settings:   settings,
		Fill:       (*Config).fill,
		Fits:       fits,
		Trainer: func(j *learner.Job[Config]) (learner.Trainer, error) {
			return newTrainer(j.Config, j.Manifest), nil
		},
		StateVersion: 1,
		Kernel: func(j *learner.Job[Config]) (round.Kernel, error) {
			return &kernel{columns: j.Config.columns(j.Manifest), labels: j.Manifest.Labels, cfg: j.Config}, nil
		},
		Model: simplex.Decode,
		Memory: func(c *Config, m *dataset.Manifest) algorithms.Footprint {
			q := int64(m.Features + 1)
			weights, gram := 8*q*int64(m.Labels), 8*q*(q+1)/2
			return algorithms.Footprint{Model: weights + 64, Nodes: int64(len(m.Shards)),
				Node:  max(gram, weights, 8*int64(scaling.MostSums(c.Scaling, m))) + 16*int64(m.Labels) + 64,
				State: 5*gram + int64(c.Iterations+8)*weights + 16*int64(m.Labels) + 256}
		},
	})
}

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
	param.Bool("bias", "give each label a bias", true, func(c *Config) *bool { return &c.Bias }).Preset(param.Paper, false),
	param.Float("rho", "weight of the constraints in a step of ADMM; it decides how fast the steps converge", 1e-9, 1e9, 2,
		func(c *Config) *float64 { return &c.Rho }),
	param.Float("ridge", "added to the diagonal of the products of the features", 1e-14, 1e12, 1e-5,
		func(c *Config) *float64 { return &c.Ridge }),
	param.Float("ridge_fraction", "added to the diagonal as well, as a fraction of its mean", 0, 1e6, 0.1,
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

// errUnseen says that a label has no degree.
func errUnseen(label string) error {
	return fmt.Errorf("%s: the label %s is missing in every training sample", Name, label)
}
