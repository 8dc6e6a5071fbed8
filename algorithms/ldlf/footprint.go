package ldlf

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/network"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
)

// memory estimates the memory of a trainer. The state is Θ, its one
// or two moments, and q; with validation the best Θ and q, and with a margin those of the reference; with scaling the shift
// and scale of each feature; counters, losses and a part of a gradient. A node of the reduction holds a gradient (Θ's size) or
// a leaf update's sums (a float64 for each element of q).
func memory(c *Config, m *dataset.Manifest) algorithms.Footprint {
	z := newSizes(c, m.Features, m.Labels)
	theta, q := 4*int64(z.theta()), 4*int64(z.q())
	f := algorithms.Footprint{State: 2*theta + q + min(theta, 4*gradient.PartValues) + 256, Model: theta + q, Node: max(theta, 2*q), Nodes: int64(len(m.Shards))}
	if c.Optimizer == optimizerAdam {
		f.State += theta
	}
	if c.ValidationFraction > 0 {
		f.State += theta + q
		if c.ValidationMargin > 0 {
			f.State += theta + q
		}
	}
	if c.Shrink {
		f.State += 4 * int64(m.Labels)
	}
	if c.Scaling != scaling.None {
		f.State += 16 * int64(m.Features)
		f.Model += 16 * int64(m.Features)
	}
	f.Model += 4 * int64(modelSettings+z.trees*z.splits)
	function := newFunction(c, z, m.Sparse, 0)
	f.Model += network.TableBytes(function)
	f.Node = max(f.Node, largestNode(c, function, &z, m))
	if n, ok := function.(*network.Network); ok {
		f.Weights = c.Network.Initial.Memory(n)
	}
	return f
}

// modelSettings is the length of a model's tensor of settings.
const modelSettings = 8

// largestNode returns the bytes of the largest partial: a gradient with its numbers of rows
// and sums, a leaf update, or a round of scaling.
func largestNode(c *Config, f gradient.Function, z *sizes, m *dataset.Manifest) int64 {
	return max(gradient.StepBytes(f), int64(8*(leafAt+z.q()+1)), int64(8*scaling.MostSums(c.Scaling, m)))
}
