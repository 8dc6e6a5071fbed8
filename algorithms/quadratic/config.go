package quadratic

import (
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/kit/target"
)

// Name selects the algorithm in a spec.
const Name = "quadratic"

// Config holds the settings of a job.
type Config struct {
	Preset string
	Clip   bool
	Ridge  float64
	Scale  target.Scale
}

var settings = append(param.Table[Config]{
	param.Word("preset", "auto clips predictions to the range of the labels; paper does not", func(c *Config) *string {
		return &c.Preset
	}, "auto", "paper"),
	param.Bool("clip_predictions", "clip predictions to the range from the first label's number to the last label's", true,
		func(c *Config) *bool {
			return &c.Clip
		}).Preset("paper", false),
	param.Float("ridge", "ridge term: added to the mean squares of the standardised columns if some columns depend "+
		"linearly on others",
		1e-14, 1, 1e-10, func(c *Config) *float64 { return &c.Ridge }),
}, target.Settings(func(c *Config) *target.Scale { return &c.Scale })...)
