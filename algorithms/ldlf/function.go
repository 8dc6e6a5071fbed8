package ldlf

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/network"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
)

// newFunction returns the feature function of a job.
func newFunction(c *Config, z sizes, sparse bool, seed uint64) gradient.Function {
	scaled := c.Scaling != scaling.None
	if c.Network.Deep() {
		return network.New(network.Plan{Sparse: sparse, Scaled: scaled, Seed: seed, Layers: c.Network.Layers(z.features, z.bias, outputLayer(z.outputs))})
	}
	return &gradient.Linear{Options: gradient.Options{
		Features: z.features, Outputs: z.outputs, Bias: z.bias, Sparse: sparse, Scaled: scaled,
		Normal: c.Init == initNormal, Deviation: c.InitStd,
	}}
}

// outputLayer is a network's last layer.
func outputLayer(units int) network.Output { return network.Output{Units: units, Start: network.He} }

// decodeFunction returns the feature function of a model, whose tensors begin with its own.
func (m *model) decodeFunction(tensors []algorithms.Tensor) (gradient.Function, error) {
	f, err := network.Decode(m.features, m.outputs, tensors)
	if f != nil || err != nil {
		return f, err
	}
	return &gradient.Linear{Options: gradient.Options{Features: m.features, Outputs: m.outputs, Bias: m.bias}}, nil
}
