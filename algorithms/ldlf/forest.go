package ldlf

import (
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/network"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/internal/num"
)

// maxValues bounds Θ and q: what one value of a round can hold (512 MiB).
const maxValues = 1 << 27

// sizes are the numbers that shape a forest.
type sizes struct {
	trees, depth     int
	splits, leaves   int // of one tree
	features, labels int
	outputs          int
	bias             bool
	parameters       int // the length of Θ
}

func newSizes(c *Config, features, labels int) sizes {
	splits := splitNodes(c.Depth)
	z := sizes{
		trees: c.Trees, depth: c.Depth, splits: splits, leaves: splits + 1,
		features: features, labels: labels, outputs: c.Outputs, bias: c.Bias,
	}
	z.parameters = gradient.Parameters(newFunction(c, z, false, 0))
	return z
}

// splitNodes returns the split nodes of a tree of depth h: 2^(h-1) - 1.
func splitNodes(h int) int { return 1<<(h-1) - 1 }

// treeQ returns the length of one tree's q (leaves×labels).
func (z *sizes) treeQ() int { return z.leaves * z.labels }

// q returns the length of all trees' q (trees×leaves×labels).
func (z *sizes) q() int { return z.trees * z.treeQ() }

// treePhi returns tree k's part of φ (trees×splits).
func (z *sizes) treePhi(phi []uint32, k int) []uint32 { return phi[k*z.splits : (k+1)*z.splits] }

// chunk returns tree k's part of a vector of equal parts, such as q.
func chunk[T float32 | float64](v []T, k, width int) []T {
	return v[k*width : (k+1)*width : (k+1)*width]
}

// newFunction returns the feature function of a job.
func newFunction(c *Config, z sizes, sparse bool, seed uint64) gradient.Function {
	scaled := c.Scaling != scaling.None
	if c.Network.Deep() {
		return network.New(network.Plan{Sparse: sparse, Scaled: scaled, Seed: seed, Layers: c.Network.Layers(z.features, z.bias, outputLayer(z.outputs))})
	}
	return &gradient.Linear{
		Features: z.features, Outputs: z.outputs, Bias: z.bias, Sparse: sparse, Scaled: scaled,
		Normal: c.Init == initNormal, Deviation: c.InitStd,
	}
}

// outputLayer is a network's last layer.
func outputLayer(units int) network.Output { return network.Output{Units: units, Start: network.He} }

// drawPhi draws the index function φ of every tree (trees×splits): tree k's is the
// start of permutation (seed, 0, k) of the output units, so no unit occurs twice
// in a tree. Where trees share no units, tree k has the k-th leaves-many of them.
func drawPhi(z sizes, seed uint64, own bool) []uint32 {
	key := num.NewKey(seed, "ldlf/phi")
	phi := make([]uint32, 0, z.trees*z.splits)
	for k := range z.trees {
		from, units := 0, z.outputs
		if own {
			from, units = k*z.leaves, z.leaves
		}
		p := num.NewPermutation(key, 0, uint32(k), uint64(units))
		for n := range z.splits {
			phi = append(phi, uint32(from)+uint32(p.At(uint64(n))))
		}
	}
	return phi
}

// fillUniform sets leaves to their first distributions, q_ℓc = 1/C.
func fillUniform(q []float32, labels int) {
	for i := range q {
		q[i] = 1 / float32(labels)
	}
}

// isUniform reports whether every leaf still holds the uniform distribution,
// exactly: then the gradient of Θ is exactly zero.
func isUniform(q []float32, labels int) bool {
	u := 1 / float32(labels)
	for _, v := range q {
		if v != u {
			return false
		}
	}
	return true
}

// turns says which trees a mini-batch trains.
type turns struct {
	strategy string
	trees    int
	interval uint64 // mini-batches from one leaf update to the next
	key      num.Key
}

func newTurns(c *Config, seed uint64) turns {
	return turns{c.Strategy, c.Trees, uint64(c.LeafBatches), num.NewKey(seed, "ldlf/tree")}
}

// all reports whether each mini-batch trains all trees.
func (o *turns) all() bool { return o.strategy == strategyJoint || o.trees == 1 }

// at returns the trees, from the first one to below the end, that mini-batch step trains.
func (o *turns) at(step uint64) (first, end int) {
	switch {
	case o.all():
		return 0, o.trees
	case o.strategy == strategyRotate:
		first = int(step / o.interval % uint64(o.trees))
	default:
		first = int(num.NewStream(o.key, step, 0).Uint64n(uint64(o.trees)))
	}
	return first, first + 1
}

// updated returns the trees of the leaf update that comes after so many steps.
func (o *turns) updated(steps uint64) (first, end int) {
	if o.strategy != strategyRotate || steps == 0 {
		return 0, o.trees
	}
	return o.at(steps - 1)
}

// idler finds the output units that only trees read which a mini-batch does not train.
type idler struct {
	turns turns
	size  sizes
	phi   []uint32
	idle  []bool
}

// units returns, for each output unit, whether it rests in a step; nil: none does.
func (x *idler) units(step uint64) []bool {
	first, end := x.turns.at(step)
	if end-first == x.size.trees {
		return nil
	}
	for i := range x.idle {
		x.idle[i] = true
	}
	for k := first; k < end; k++ {
		for _, unit := range x.size.treePhi(x.phi, k) {
			x.idle[unit] = false
		}
	}
	return x.idle
}
