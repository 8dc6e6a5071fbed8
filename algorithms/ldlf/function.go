package ldlf

import (
	"github.com/coppice-ldl/coppice/algorithms/gradient"
	"github.com/coppice-ldl/coppice/algorithms/scaling"
)

// newFunction returns the feature function of a job.
func newFunction(c *Config, z sizes, sparse bool, seed uint64) gradient.Function {
	return gradient.Functions[0].New(gradient.Options{
		Features: z.features, Outputs: z.outputs, Bias: z.bias, Sparse: sparse, Scaled: c.Scaling != scaling.None,
		Normal: c.Init == initNormal, Deviation: c.InitStd, Seed: seed,
	})
}
