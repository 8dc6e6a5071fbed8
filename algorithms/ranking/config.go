package ranking

import (
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/algorithms/kit/target"
	"github.com/coppice-ldl/coppice/dataset"
)

// Name selects the algorithm in a spec.
const Name = "ranking"

// maxLandmarks bounds the partial of a round: its products of pairs of landmarks take 16 MiB.
const maxLandmarks = 2048

// maxKernels bounds the number of kernels: the width of the last is 2^-2 of the sample's deviation.
const maxKernels = 16

// Config holds the settings of a job.
type Config struct {
	Preset      string
	Scaling     string
	Landmarks   int     // 0: all training rows
	Kernels     int     // n
	Widths      string  // widthsWide or widthsPrinted
	Lambda      float64 // λ of Eqs 17 and 18
	Loops       int     // inner loops of an M-step, at most
	Tolerance   float64 // changes of u and v at which an M-step ends
	Rounds      int     // of EM, at most
	Refinements int     // of a solution
	Clip        bool
	Scale       target.Scale
}

// The words of widths.
const (
	widthsWide    = "wide"
	widthsPrinted = "printed"
)

var settings = append(param.Table[Config]{
	param.Word("preset", "auto scales dense features and clips predictions to the range of the labels; paper uses raw "+
		"features and does not clip",
		func(c *Config) *string { return &c.Preset }, param.Auto, param.Paper),
	scaling.Setting(func(c *Config) *string { return &c.Scaling }).LeftOut(param.Paper),
	param.Int("landmarks", "number of landmarks: random training samples with which kernels are computed; 0: all "+
		"samples, with their full kernel matrices in memory",
		0, maxLandmarks, 0, func(c *Config) *int { return &c.Landmarks }),
	param.Int("kernels", "number of Gaussian kernels, which are numbered o = 0, 1, ...", 1, maxKernels, 4,
		func(c *Config) *int {
			return &c.Kernels
		}),
	param.Word("widths", "width of kernel o, in standard deviations of the scaled features: wide (2^((10-o)/2.5)) or "+
		"printed (2^((o-10)/2.5), as printed in the paper)",
		func(c *Config) *string { return &c.Widths }, widthsWide, widthsPrinted),
	param.Float("lambda", "λ: factor of the penalty on the squared weights (Eqs 17 and 18 of Yan et al. 2007)", 1e-9, 1e6,
		5e-4, func(c *Config) *float64 {
			return &c.Lambda
		}),
	param.Int("loops", "maximum number of inner loops; each loop solves once for the weights of the landmarks (u) and "+
		"once for the weights of the kernels (v)", 1, 1000, 20, func(c *Config) *int {
		return &c.Loops
	}),
	param.Float("tolerance", "inner loops end if the changes of the weights of the landmarks (u) and of the kernels (v) "+
		"have norms below this value", 0, 1, 1e-4, func(c *Config) *float64 {
		return &c.Tolerance
	}),
	param.Int("em_rounds", "maximum number of EM rounds; each round but the first begins by moving the samples' numbers "+
		"within their intervals",
		1, 100, 1, func(c *Config) *int { return &c.Rounds }),
	param.Int("refinements", "number of times that each solution is refined with its residual", 2, 20, 2,
		func(c *Config) *int {
			return &c.Refinements
		}),
	param.Bool("clip_predictions", "clip predictions to the range from the first label's number to the last label's", true,
		func(c *Config) *bool {
			return &c.Clip
		}).Preset(param.Paper, false),
}, target.Settings(func(c *Config) *target.Scale { return &c.Scale })...)

// fill computes what depends on the data and was not given.
func (c *Config) fill(given param.Values, m *dataset.Manifest) {
	c.Scale.Fill(given, m)
	if !given.Has("scaling") && c.Preset == param.Auto {
		c.Scaling = scaling.Rule(m)
	}
}
