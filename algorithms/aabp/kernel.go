package aabp

import (
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/softmax"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

func newKernel(c *Config, seed uint64, m *dataset.Manifest) *softmax.Kernel {
	k := &softmax.Kernel{Name: Name, Kernel: gradient.Kernel{
		Function: newFunction(c, seed, m), Outputs: m.Labels,
		Draws: gradient.Batches{Key: num.NewKey(seed, "aa-bp/batch"), Size: c.BatchSize},
	}}
	if c.Loss == lossSquared {
		k.NewLoss = func() gradient.Loss { return &squaredError{make([]float64, m.Labels)} }
	}
	return k
}
