package ldlf

import (
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/internal/num"
)

// A block has up to maxBlock rows, whose values together are at most blockValues, so
// that a processor's cache holds them. Fewer than fewRows rows are processed row by row;
// forests too large for the cache use blocks of minBlock rows. The size changes no bits.
const (
	maxBlock    = 64
	fewRows     = 10
	minBlock    = 8
	blockValues = 1 << 16
	blockLanes  = 16 // columns go up to a multiple
)

// rowBlock takes a block of rows through the trees: each of its matrices has a row
// for what one value is in all samples, so that the arithmetic of a split node or a leaf
// is on whole vectors. A sample has the same bits as in a block of its own.
type rowBlock struct {
	outputs, labels, leaves int

	width   int // the most samples at once
	n       int // samples now, and a few columns more up to whole vectors
	samples int // of n, where gradients are wanted

	s, t, df []float32 // outputs×n: σ(f), σ(-f), ∂R/∂f
	d, g, r  []float32 // labels×n: degrees, predictions, their ratios
	node     []float32 // nodes×n, of one tree: probabilities, then masses
	loss     []float64 // n: the K-L, summed over trees
}

// newRowBlock returns a row block for trees of sizes z. Buffers are allocated on first use:
// validation and prediction never need them.
func newRowBlock(z *sizes) rowBlock {
	each := 2*(z.splits+z.leaves) + 4*z.outputs + 3*z.labels
	w := maxBlock
	for w > minBlock && w*each > blockValues {
		w /= 2
	}
	return rowBlock{outputs: z.outputs, labels: z.labels, leaves: z.leaves, width: w}
}

// ready makes what routing and predictions need; begin makes the rest.
func (a *rowBlock) ready() {
	if a.s != nil {
		return
	}
	a.s, a.t = make([]float32, a.outputs*a.width), make([]float32, a.outputs*a.width)
	a.d, a.g = make([]float32, a.labels*a.width), make([]float32, a.labels*a.width)
	a.node = make([]float32, a.nodes()*a.width)
}

func (a *rowBlock) nodes() int { return 2*a.leaves - 1 }

// take takes samples up with their outputs f (len(samples)×outputs), in rows of n
// values: beyond the samples' there are outputs and degrees of 0.
func (a *rowBlock) take(samples []gradient.Sample, f []float32, n int) {
	a.ready()
	a.n = n
	if n > len(samples) {
		clear(a.s[:a.outputs*n])
		clear(a.d[:a.labels*n])
	}
	num.Transpose32(a.s, n, f, a.outputs, len(samples), a.outputs)
	for i := range samples {
		copy(a.g[i*a.labels:(i+1)*a.labels], samples[i].D)
	}
	num.Transpose32(a.d, n, a.g, a.labels, len(samples), a.labels)
	units := a.outputs * n
	num.SigmoidPairs(a.s[:units], a.t[:units], a.s[:units])
}

// begin takes samples up for their gradients.
func (a *rowBlock) begin(samples []gradient.Sample, f []float32) {
	if a.df == nil {
		a.df, a.r = make([]float32, a.outputs*a.width), make([]float32, a.labels*a.width)
		a.loss = make([]float64, a.width)
	}
	a.samples = len(samples)
	lanes := min(a.width, blockLanes)
	a.take(samples, f, (len(samples)+lanes-1)/lanes*lanes)
	clear(a.df[:a.outputs*a.n])
	clear(a.loss)
}

// tree adds one tree's ∂R/∂f (without the 1/N) and K-L; q is leaves×labels.
func (a *rowBlock) tree(phi []uint32, q []float32) {
	p := a.reach(phi)
	a.predict(p, q)
	a.ratios()
	a.leafMass(p, q)
	a.splitGradients(phi)
}

// reach is the function reach for all samples (Eq. 1). It returns the leaves' part,
// leaves×n.
func (a *rowBlock) reach(phi []uint32) []float32 {
	units := a.outputs * a.n
	num.Descend(a.node[:a.nodes()*a.n], a.s[:units], a.t[:units], phi, a.n)
	return a.node[len(phi)*a.n : a.nodes()*a.n]
}

// leafRun is how many leaves' probabilities a processor's cache holds while all labels
// take them.
const leafRun = 512

// predict is the function predict for all samples (Eq. 2): it sets a.g, labels×n, from
// p, leaves×n, and returns it.
func (a *rowBlock) predict(p, q []float32) []float32 {
	g := a.g[:a.labels*a.n]
	clear(g)
	for l := 0; l < a.leaves; l += leafRun {
		run := min(leafRun, a.leaves-l)
		num.AddProductT(g, q[l*a.labels:(l+run)*a.labels], p[l*a.n:(l+run)*a.n], run, a.n)
	}
	return g
}

// ratios is the function ratios for all samples, each of weight 1.
func (a *rowBlock) ratios() {
	all := a.labels * a.n
	num.RatioRows(a.r[:all], a.loss[:a.n], a.d[:all], a.g[:all], gFloor)
}

// leafMass is the function leafMass for all samples (Eq. 8), in the place of p.
func (a *rowBlock) leafMass(p, q []float32) {
	num.MulProduct(p, q, a.r[:a.labels*a.n], a.labels, a.n)
}

// splitGradients is the function splitGradients for all samples (Eq. 6), from the leaves'
// masses in a.node.
func (a *rowBlock) splitGradients(phi []uint32) {
	units := a.outputs * a.n
	num.Ascend(a.df[:units], a.node[:a.nodes()*a.n], a.s[:units], a.t[:units], phi, a.n)
}

// end sets df (samples×outputs) to the samples' ∂R/∂f and appends to losses their K-L
// summed over trees.
func (a *rowBlock) end(df []float32, losses []float64) []float64 {
	num.Transpose32(df, a.outputs, a.df, a.n, a.outputs, a.samples)
	return append(losses, a.loss[:a.samples]...)
}
