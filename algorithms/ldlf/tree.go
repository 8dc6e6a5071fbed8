package ldlf

import (
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/network"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/internal/num"
)

// The kernels of one tree and one row: plain functions over flat slices.
//
// s and t hold σ(f) and σ(-f) of every output unit, phi the output unit of each
// split node in heap order. node vectors hold a value for each node of a tree in
// heap order, the split nodes first: node[len(phi):] are the leaves, left to right.

// gFloor bounds a tree's predictions from below (accuracy.md, Conventions).
const gFloor = 1e-20

// reach sets node[n] to the probability that the row reaches node n: for a leaf,
// p(ℓ|x; Θ) of Eq. 1, the product of the split probabilities on its path. The
// right branch takes t = σ(-f), which keeps its precision where 1 - s would be 0.
func reach(node, s, t []float32, phi []uint32) {
	node[0] = 1
	for n, unit := range phi {
		p := node[n]
		node[2*n+1] = p * s[unit]
		node[2*n+2] = p * t[unit]
	}
}

// predict sets g (labels) to Σ_ℓ p(ℓ|x) q_ℓ of Eq. 2; q is leaves×labels.
func predict(g, p, q []float32) {
	clear(g)
	num.MulAddRows(g, p, q)
}

// ratios sets r[c] to weight·d[c]/g[c], with g clamped at gFloor, and returns the
// K-L divergence Σ_c d[c] ln(d[c]/g[c]) in nats (Eq. 3 less the row's label
// entropy), unweighted; d[c] = 0 counts 0. terms is room for the sum's terms.
func ratios(r, d, g []float32, weight float32, terms []float64) float64 {
	clear(terms)
	num.Ratios(r, terms, d, g, weight, gFloor)
	kl := 0.0
	for _, x := range terms {
		kl += x
	}
	return kl
}

// leafMass sets mass's leaves to p_ℓ Σ_c r_c q_ℓc, which is Σ_c d_c ξ_ℓ(q_ℓc, x)
// of Eq. 8: the share of the row's labels that leaf ℓ answers for. qT is labels×leaves.
func leafMass(leaves, p, r, qT []float32) {
	clear(leaves)
	num.MulAddRows(leaves, r, qT)
	for l, x := range p {
		leaves[l] *= x
	}
}

// splitGradients adds ∂R/∂f of Eq. 6, for one row and without the 1/N, to df
// (one value for each output unit). mass holds the leaves' masses; the split
// nodes' are filled bottom-up: A_n = A_left + A_right, and with A in place of
// Σ_c d_c g_c(T)/g_c the equation reads ∂R/∂f_n = s_n A_right - (1 - s_n) A_left.
func splitGradients(df, mass, s, t []float32, phi []uint32) {
	for n := len(phi) - 1; n >= 0; n-- {
		left, right := mass[2*n+1], mass[2*n+2]
		mass[n] = left + right
		unit := phi[n]
		df[unit] += float32(s[unit]*right) - float32(t[unit]*left)
	}
}

// updateLeaves replaces q (leaves×labels) by q_ℓc T_ℓc / Σ_c q_ℓc T_ℓc, where T is
// Σ_i p(ℓ|x_i) d_ic / g_c(x_i): that is Eq. 12. A leaf that nothing reaches keeps
// its q.
func updateLeaves(q []float32, sums []float64, labels int) {
	for l := 0; l < len(q); l += labels {
		leaf, sum := q[l:l+labels], sums[l:l+labels]
		total := 0.0
		for c, t := range sum {
			total += float64(float64(leaf[c]) * t)
		}
		if !(total > 0) {
			continue
		}
		for c, t := range sum {
			leaf[c] = float32(float64(leaf[c]) * t / total)
		}
	}
}

// transpose sets dst to the transpose of m, whose rows have n values: four rows at a time,
// which become four neighbours.
func transpose[T float32 | float64](dst, m []T, n int) {
	rows := len(m) / n
	i := 0
	for ; i+4 <= rows; i += 4 {
		a, b, c, d := m[i*n:(i+1)*n], m[(i+1)*n:(i+2)*n], m[(i+2)*n:(i+3)*n], m[(i+3)*n:(i+4)*n]
		b, c, d = b[:len(a)], c[:len(a)], d[:len(a)]
		for j, x := range a {
			to := dst[j*rows+i:][:4]
			to[0], to[1], to[2], to[3] = x, b[j], c[j], d[j]
		}
	}
	for ; i < rows; i++ {
		for j, x := range m[i*n : (i+1)*n] {
			dst[j*rows+i] = x
		}
	}
}

// klFloor bounds predictions from below in validation, as the measures do.
const klFloor = 1e-12

// divergence returns the K-L divergence Σ_c d_c ln(d_c / g_c) in nats, with g
// clamped at klFloor; d_c = 0 counts 0.
func divergence(d, g []float32) float64 {
	sum := 0.0
	for c, dc := range d {
		if dc > 0 {
			sum += float64(float64(dc) * num.Log(float64(dc)/max(float64(g[c]), klFloor)))
		}
	}
	return sum
}

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
		return network.New(network.Plan{Sparse: sparse, Scaled: scaled, Seed: seed, Layers: c.Network.Layers(z.features,
			z.bias, outputLayer(z.outputs))})
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
	return turns{strategy: c.Strategy, trees: c.Trees, interval: uint64(c.LeafBatches), key: num.NewKey(seed, "ldlf/tree")}
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
