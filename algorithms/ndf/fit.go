package ndf

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms/kit/forest"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Iterations of Eq. 4 of the supplement.
const (
	startUpdates = 10   // to compare random networks
	stepUpdates  = 3    // before each step of Adam
	finalUpdates = 1000 // at most, of the trained network
	finalChange  = 1e-9 // that ends them
)

// Adam's constants beside the learning rate: those of Kingma and Ba 2015.
const (
	adamBeta1   = 0.9
	adamBeta2   = 0.999
	adamEpsilon = 1e-8
)

// fitter trains the network of one node after the other and owns all memory for that.
type fitter struct {
	cfg    *Config
	keys   keys
	source *source
	reader reader
	net    network
	drawn  []uint32 // rows of a mini-batch

	all    batch // all rows of the node, if it is small enough
	part   batch // a mini-batch
	single batch // a block of a large node

	pi           posteriors
	outs         [][]float32 // by start: outputs of all rows
	starts       [][]float32 // by start: weights
	routing      routing     // of all rows
	order        []uint64    // of the median
	g            []float64
	slopes       []float32
	grad, m1, m2 []float32
	evaluations  uint64 // of log Q or its gradient
}

// keys select the random streams of a seed.
type keys struct{ bootstrap, inputs, hidden, weights, batches num.Key }

func newKeys(seed uint64) keys {
	key := func(purpose string) num.Key { return num.NewKey(seed, "ndf/"+purpose) }
	return keys{bootstrap: key("bootstrap"), inputs: key("inputs"), hidden: key("hidden"), weights: key("weights"),
		batches: key("batches")}
}

// node is a node whose network is trained.
type node struct {
	tree   uint32
	path   uint64   // 1 for the root; the children of p are 2p (left) and 2p+1
	rows   []uint32 // training rows; rows of classes in the order of the classes
	copies int      // sum of their draws
}

// fit trains the network of a node. It returns the outputs of the node's rows, and
// log Q/n + H(π̂): with binary routing it is the information gain, otherwise more (theorem 1 of
// the supplement). The network and outputs are valid until the next call.
func (f *fitter) fit(ctx context.Context, n *node) (out []float32, gain float64, err error) {
	f.topology(n)
	f.scale(n)
	f.reader.begin(&f.net, f.source.features, f.source.sparse)
	defer f.reader.end(&f.net, f.source.sparse)
	f.loadNode(n)
	f.start(n)
	if err := f.descend(ctx, n); err != nil {
		return nil, 0, err
	}
	f.evaluate(n, [][]float32{f.net.weights}, f.outs)
	out = f.outs[0]
	f.routing.set(out)
	f.pi.start(&f.all.masses, f.routing.left, f.routing.right)
	for range finalUpdates {
		if f.pi.update(&f.all.masses, f.routing.left, f.routing.right) < finalChange {
			break
		}
	}
	f.evaluations++
	return out, f.pi.logQ(&f.all.masses, f.routing.left, f.routing.right)/f.all.total + f.entropy(), nil
}

// entropy returns H(π̂), the entropy of the class shares of all rows.
func (f *fitter) entropy() float64 {
	h := 0.0
	for c := range f.all.classes {
		_, _, w := f.all.segment(c)
		if share := num.Sum64(w) / f.all.total; share > 0 {
			h -= float64(share * num.Log(share))
		}
	}
	return h
}

// topology draws the inputs of a node and the number of hidden units.
func (f *fitter) topology(n *node) {
	q := f.source.features
	m := f.cfg.inputs(q)
	drawn := num.NewPermutation(f.keys.inputs, n.path, n.tree, uint64(q))
	f.net.inputs = drawn.Append(f.net.inputs[:0], 0, m)
	slices.Sort(f.net.inputs)
	t := f.cfg.hidden()
	switch {
	case t.adaptive:
		f.net.hidden = min(max(n.copies/samplesForAUnit, t.least), t.most)
	default:
		s := num.NewStream(f.keys.hidden, n.path, n.tree)
		f.net.hidden = t.least + int(s.Uint64n(uint64(t.most-t.least+1)))
	}
	forest.Resized(&f.net.weights, parameters(m, f.net.hidden))
}

// scale sets the means and deviations of the inputs over the node's samples.
func (f *fitter) scale(n *node) {
	m := len(f.net.inputs)
	shift, scale := forest.Resized(&f.net.shift, m), forest.Resized(&f.net.scale, m)
	sums := forest.Resized(&f.g, 2*m)
	mean, square := sums[:m], sums[m:]
	f.source.moments(mean, square, f.net.inputs, n.rows, float64(n.copies))
	for i := range m {
		deviation := math.Sqrt(square[i])
		shift[i], scale[i] = float32(mean[i]), 0
		if s := 1 / deviation; deviation > 1e-7*math.Abs(mean[i]) && s <= math.MaxFloat32 {
			scale[i] = float32(s)
		}
	}
}

// large reports whether the steps of a node take mini-batches.
func (f *fitter) large(n *node) bool { return len(n.rows) > f.cfg.BatchAbove }

// loadNode loads the masses of all rows, and, unless the node is large, their inputs.
func (f *fitter) loadNode(n *node) {
	f.source.masses(&f.all.masses, n.rows)
	f.pi.resize(f.source.classes)
	if !f.large(n) {
		f.load(&f.all, n.rows)
	}
}

// evaluate computes the outputs of all rows under each of some weights.
func (f *fitter) evaluate(n *node, weights, outs [][]float32) {
	for from := 0; from < len(n.rows); from += blockRows {
		to := min(from+blockRows, len(n.rows))
		b := &f.single
		at := 0
		if f.large(n) {
			f.load(b, n.rows[from:to])
		} else {
			b, at = &f.all, from/blockRows
		}
		for i, w := range weights {
			f.net.forward(&b.blocks[at], w)
			copy(outs[i][from:to], b.blocks[at].out)
		}
	}
}

// start draws random networks, sets b₂ such that half of the samples go to either side, and
// keeps the network of the highest log Q.
func (f *fitter) start(n *node) {
	resizeAll(&f.outs, f.cfg.Starts, len(n.rows))
	resizeAll(&f.starts, f.cfg.Starts, len(f.net.weights))
	for i, w := range f.starts {
		f.draw(w, num.NewStream(f.keys.weights, n.path<<32|uint64(i), n.tree))
	}
	f.evaluate(n, f.starts, f.outs)
	best, most := 0, math.Inf(-1)
	for i, out := range f.outs {
		median := f.median(out, n.rows)
		f.starts[i][len(f.net.weights)-1] -= median
		for j := range out {
			out[j] -= median
		}
		if q := f.compare(out); q > most {
			best, most = i, q
		}
	}
	copy(f.net.weights, f.starts[best])
}

// compare returns log Q of outputs after a few iterations of Eq. 4.
func (f *fitter) compare(out []float32) float64 {
	f.routing.set(out)
	f.pi.start(&f.all.masses, f.routing.left, f.routing.right)
	for range startUpdates {
		f.pi.update(&f.all.masses, f.routing.left, f.routing.right)
	}
	f.evaluations++
	return f.pi.logQ(&f.all.masses, f.routing.left, f.routing.right)
}

// draw draws weights: W₁ ~ N(0, 1/inputs), b₁ ~ N(0, 1) and w₂ ~ N(0, 4/hidden); b₂ is 0.
func (f *fitter) draw(weights []float32, s *num.Stream) {
	m, h := len(f.net.inputs), f.net.hidden
	first, last := 1/math.Sqrt(float64(m)), 1/math.Sqrt(float64(m))
	if h > 0 {
		last = 2 / math.Sqrt(float64(h))
	}
	for i := range weights {
		switch {
		case i == len(weights)-1:
			weights[i] = 0
		case f.net.isBias(i):
			weights[i] = float32(s.Normal())
		case i < h*(m+1):
			weights[i] = float32(first * s.Normal())
		default:
			weights[i] = float32(last * s.Normal())
		}
	}
}

// median returns an output that half of the samples, copies counted, do not exceed.
func (f *fitter) median(out []float32, rows []uint32) float32 {
	order := forest.Resized(&f.order, len(out))
	all := uint64(0)
	for i, x := range out {
		draws := uint64(f.source.counts[rows[i]])
		order[i] = uint64(orderedBits(x))<<32 | draws
		all += draws
	}
	slices.Sort(order)
	below := uint64(0)
	for _, o := range order {
		if below += o & (1<<32 - 1); 2*below >= all {
			return fromOrdered(uint32(o >> 32))
		}
	}
	return 0
}

// orderedBits returns a number that is ordered as the finite x are.
func orderedBits(x float32) uint32 {
	b := math.Float32bits(x)
	if b>>31 == 1 {
		return ^b
	}
	return b | 1<<31
}

func fromOrdered(b uint32) float32 {
	if b>>31 == 1 {
		return math.Float32frombits(b &^ (1 << 31))
	}
	return math.Float32frombits(^b)
}

// descend takes the steps of Adam.
func (f *fitter) descend(ctx context.Context, n *node) error {
	w := f.net.weights
	for _, v := range []*[]float32{&f.grad, &f.m1, &f.m2} {
		clear(forest.Resized(v, len(w)))
	}
	a := num.AdamFactors{Rate: float32(f.cfg.LearningRate), Beta1: adamBeta1, Beta2: adamBeta2, Rest1: 1 - adamBeta1,
		Rest2: 1 - adamBeta2, Epsilon: adamEpsilon}
	beta1, beta2 := 1.0, 1.0
	for step := range f.cfg.Iters {
		if err := ctx.Err(); err != nil {
			return err
		}
		b := &f.all
		if f.large(n) {
			b = &f.part
			f.source.masses(&b.masses, f.drawBatch(n, step))
			f.load(b, f.drawn)
		}
		f.gradient(b)
		beta1, beta2 = float64(beta1*adamBeta1), float64(beta2*adamBeta2)
		a.Correct1, a.Correct2 = float32(1-beta1), float32(1-beta2)
		num.Adam(w, f.m1, f.m2, f.grad, &a)
	}
	return nil
}

// drawBatch draws the mini-batch of a step: the next rows of a permutation, a new one for each
// pass over the node's rows, in the order of the node.
func (f *fitter) drawBatch(n *node, step int) []uint32 {
	rows, size := len(n.rows), f.cfg.BatchSize
	passes := rows / size // of mini-batches in a pass; the last rows of a pass are left out
	drawn := num.NewPermutation(f.keys.batches, n.path<<32|uint64(step/passes), n.tree, uint64(rows))
	f.drawn = drawn.Append(f.drawn[:0], uint64(step%passes*size), size)
	slices.Sort(f.drawn)
	for i, at := range f.drawn {
		f.drawn[i] = n.rows[at]
	}
	return f.drawn
}

// gradient sets grad to the gradient of -log Q/n + ℓ1·‖weights‖₁ on a batch.
func (f *fitter) gradient(b *batch) {
	f.evaluations++
	for i := range b.blocks {
		f.net.forward(&b.blocks[i], f.net.weights)
	}
	b.routing.set(b.out)
	f.pi.start(&b.masses, b.routing.left, b.routing.right)
	for range stepUpdates {
		f.pi.update(&b.masses, b.routing.left, b.routing.right)
	}
	g, slopes := forest.Resized(&f.g, b.rows), forest.Resized(&f.slopes, b.rows)
	f.pi.gradient(g, &b.masses, b.routing.left, b.routing.right)
	for i, x := range g {
		slopes[i] = float32(-x * b.routing.left[i] * b.routing.right[i] / b.total)
	}
	clear(f.grad)
	for i := range b.blocks {
		from := i * blockRows
		f.net.backward(f.grad, &b.blocks[i], f.net.weights, slopes[from:from+b.blocks[i].rows])
	}
	f.penalise()
}

// penalise adds the slope of the ℓ1 penalty: its sign, 0 at 0; biases have none.
func (f *fitter) penalise() {
	if f.cfg.L1 == 0 {
		return
	}
	l1 := float32(f.cfg.L1)
	for i, w := range f.net.weights {
		if !f.net.isBias(i) {
			f.grad[i] += float32(l1 * float32(cmp.Compare(w, 0)))
		}
	}
}

// resizeAll makes *v count slices of n elements.
func resizeAll(v *[][]float32, count, n int) {
	for len(*v) < count {
		*v = append(*v, nil)
	}
	*v = (*v)[:count]
	for i := range *v {
		forest.Resized(&(*v)[i], n)
	}
}

// load reads the inputs of rows.
func (f *fitter) load(b *batch, rows []uint32) {
	width, units := len(f.net.inputs)+1, 0
	if f.net.hidden > 0 {
		units = f.net.hidden + 1
	}
	n := len(rows)
	z, zt, t, out := forest.Resized(&b.z, n*width), forest.Resized(&b.zt, n*width), forest.Resized(&b.t, n*units),
		forest.Resized(&b.out, n)
	b.blocks = b.blocks[:0]
	for from := 0; from < n; from += blockRows {
		to := min(from+blockRows, n)
		k := block{
			rows: to - from, z: z[from*width : to*width], zt: zt[from*width : to*width],
			t: t[from*units : to*units], out: out[from:to],
		}
		for i, row := range rows[from:to] {
			shard, pos := f.source.At(row)
			f.reader.read(k.z[i*width:(i+1)*width], &f.net, shard, pos)
		}
		k.transpose(len(f.net.inputs))
		b.blocks = append(b.blocks, k)
	}
}

// grower grows one tree at a time and owns all memory for that.
type grower struct {
	fitter  fitter
	source  source
	rows    []uint32 // distinct rows of the sample, those of a node together
	right   []uint32 // right halves during a partition
	pending []pendingNode
	sums    []float64 // by label
}

// pendingNode is a node that is not grown yet: its rows are rows[from:to].
type pendingNode struct {
	from, to int
	depth    int
	path     uint64
}

// newGrower returns a grower of trees on the table.
func newGrower(cfg *Config, seed uint64, t *table) *grower {
	g := &grower{
		source: source{Rows: t.Rows, features: t.features, classes: t.labels, sparse: t.sparse, class: t.class,
			weights: t.weights, counts: make([]uint32, t.Len())},
		sums: make([]float64, t.labels),
	}
	g.fitter = fitter{cfg: cfg, keys: newKeys(seed), source: &g.source}
	return g
}

// grow grows tree number n. Nodes are grown in the order of their numbers, level by level.
func (g *grower) grow(ctx context.Context, n uint32) (*Tree, error) {
	draws := g.fitter.cfg.draws(g.source.Len())
	forest.Draw(g.source.counts, g.source.weights, g.fitter.keys.bootstrap, n, draws)
	g.rows = g.rows[:0]
	for row, count := range g.source.counts {
		if count > 0 {
			g.rows = append(g.rows, uint32(row))
		}
	}
	g.source.order(g.rows)
	g.fitter.evaluations = 0
	tree := newTree(g.source.classes, g.fitter.cfg.inputs(g.source.features))
	g.pending = append(g.pending[:0], pendingNode{to: len(g.rows), path: 1})
	for at := 0; at < len(g.pending); at++ {
		if err := g.growNode(ctx, tree, n, at); err != nil {
			return nil, err
		}
	}
	tree.Evaluations = g.fitter.evaluations
	tree.Loss = max(0, tree.Loss/float64(draws))
	return tree, nil
}

// growNode makes node number at of the tree a leaf, or trains its network and adds its children.
func (g *grower) growNode(ctx context.Context, tree *Tree, number uint32, at int) error {
	p := g.pending[at]
	n := node{tree: number, path: p.path, rows: g.rows[p.from:p.to]}
	for _, row := range n.rows {
		n.copies += int(g.source.counts[row])
	}
	tree.SetSamples(at, n.copies)
	cfg := g.fitter.cfg
	if n.copies < cfg.MinSamples || p.depth >= cfg.MaxDepth || g.source.pure(n.rows) {
		g.makeLeaf(tree, at, &n)
		return nil
	}
	out, gain, err := g.fitter.fit(ctx, &n)
	if err != nil {
		return err
	}
	left := g.divide(n.rows, out)
	if left == 0 || left == len(n.rows) {
		g.makeLeaf(tree, at, &n)
		return nil
	}
	tree.addSplit(at, &g.fitter.net, gain)
	middle := p.from + left
	g.pending = append(g.pending, pendingNode{from: p.from, to: middle, depth: p.depth + 1, path: 2 * p.path},
		pendingNode{from: middle, to: p.to, depth: p.depth + 1, path: 2*p.path + 1})
	return nil
}

// divide moves the rows with outputs above 0 to the front, and returns their number. The order
// of the rows on either side stays.
func (g *grower) divide(rows []uint32, out []float32) (left int) {
	g.right = g.right[:0]
	for i, row := range rows {
		if out[i] > 0 {
			rows[left] = row
			left++
		} else {
			g.right = append(g.right, row)
		}
	}
	copy(rows[left:], g.right)
	return left
}

// makeLeaf makes a node a leaf that predicts the mean distribution of its samples, and adds
// their K-L divergence from it to the tree's loss: Σ w Σ d ln d - n Σ m ln m with the mean m.
func (g *grower) makeLeaf(tree *Tree, at int, n *node) {
	clear(g.sums)
	for _, row := range n.rows {
		w := float64(g.source.counts[row])
		for c, d := range g.source.Label(row) {
			if d > 0 {
				v := float64(d)
				g.sums[c] += float64(w * v)
				tree.Loss += float64(w * float64(v*num.Log(v)))
			}
		}
	}
	dst := tree.Leaf(at)
	for c, sum := range g.sums {
		mean := sum / float64(n.copies)
		dst[c] = float32(mean)
		if mean > 0 {
			tree.Loss -= float64(sum * num.Log(mean))
		}
	}
}
