package ldlf

import (
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// The operations (Round.Op) that are not of gradient.Kernel.
const (
	opLeaves uint8 = iota + 1 // the sums of Eq. 12 over a window of mini-batches
	opShrink                  // the losses for each weight of the mean distribution
)

var _ round.ReduceKernel = (*kernel)(nil)

// kernel is the worker's half: see round.ReduceKernel. It is shared by lanes.
type kernel struct {
	sizes
	descent gradient.Kernel
	phi     []uint32 // trees×splits
	turns   turns
	spare   *spare
}

func newKernel(c *Config, seed uint64, m *dataset.Manifest) *kernel {
	z := newSizes(c, m.Features, m.Labels)
	return &kernel{
		sizes: z, phi: drawPhi(z, seed, c.OwnUnits), turns: newTurns(c, seed), spare: new(spare),
		descent: gradient.Kernel{
			Function: newFunction(c, z, m.Sparse, seed), Outputs: z.outputs,
			Draws: gradient.Batches{Key: num.NewKey(seed, "ldlf/batch"), Size: c.BatchSize},
		},
	}
}

// Run implements round.Kernel.
func (k *kernel) Run(dst *round.Partial, unit round.Task, d *dataset.Data, v round.Vars, derived round.Derived, working any) error {
	s := working.(*scratch)
	s.unit = unit
	u := &s.unit
	if err := checkWindow(u); err != nil {
		return err
	}
	if k.descent.Run(dst, u, d, v, &s.loss, &s.Scratch) {
		return nil
	}
	s.Values.Read(v)
	switch u.Op {
	case opLeaves:
		r, _ := derived.(*routing)
		k.leafSums(dst, u, d, &s.Values, r, s)
	case opShrink:
		k.shrunkLosses(dst, u, d, v, s)
	default:
		return fmt.Errorf("ldlf: the task has the unknown operation %d", u.Op)
	}
	return nil
}

// maxWindow is the greatest number of mini-batches of a unit; see the setting
// leaf_batches.
const maxWindow = 1e6

// checkWindow refuses a unit of more mini-batches than any job has.
func checkWindow(u *round.Task) error {
	if n := u.Steps[1] - u.Steps[0]; n > maxWindow { // huge as well where they descend
		return fmt.Errorf("ldlf: the task has the invalid mini-batches %d to %d", u.Steps[0], u.Steps[1])
	}
	return nil
}

// qOf returns q (trees×leaves×labels) of a round's values, and its version.
func qOf(v *gradient.Values) (q []float32, version uint64) { return v.Own[0].Data, v.Own[0].Version }

// scratch is the working memory of one lane of a kernel or one caller of Predict.
type scratch struct {
	gradient.Scratch
	loss   forestLoss
	unit   round.Task // what is being run
	window gradient.Window

	s, t   []float32 // outputs: σ(f), σ(-f)
	node   []float32 // nodes of one tree
	mass   []float32 // the same
	g, r   []float32 // labels
	terms  []float64 // labels
	block  rowBlock
	leaves leafSpace

	qT        []float32 // trees×labels×leaves, of version qTVersion, where few rows are a unit's; nil: none yet
	qTVersion uint64
}

func newScratch(z *sizes, f gradient.Function) *scratch {
	a, nodes := newRowBlock(z), z.splits+z.leaves
	return &scratch{
		Scratch: gradient.NewScratch(f, z.outputs, a.width),
		s:       make([]float32, z.outputs), t: make([]float32, z.outputs),
		node: make([]float32, nodes), mass: make([]float32, nodes),
		g: make([]float32, z.labels), r: make([]float32, z.labels), terms: make([]float64, z.labels),
		block: a,
	}
}

// NewScratch implements round.Kernel.
func (k *kernel) NewScratch() any {
	s := newScratch(&k.sizes, k.descent.Function)
	s.loss = forestLoss{k, s}
	return s
}

// forestLoss is the loss of a forest, in one lane: see gradient.Loss. In steps it is Eq. 3 less
// the labels' entropy, summed over the trees that the mini-batch trains; in validations the K-L of the forest's prediction.
type forestLoss struct {
	k *kernel
	s *scratch
}

// Gradients implements gradient.Loss: df is ∂R/∂f of the samples, summed over these trees (Eq. 13
// without its 1/N and 1/K). There are as many samples as a block has, or fewer.
func (l *forestLoss) Gradients(df, f []float32, samples []gradient.Sample, v *gradient.Values, losses []float64) []float64 {
	k, s := l.k, l.s
	q, version := qOf(v)
	first, end := k.turns.at(s.unit.Steps[0])
	if len(samples) < fewRows {
		k.transposeQ(q, version, s)
		clear(df)
		for i := range samples {
			num.SigmoidPairs(s.s, s.t, chunk(f, i, k.outputs))
			losses = append(losses, k.rowGradient(chunk(df, i, k.outputs), samples[i].D, q, s))
		}
		return losses
	}
	a := &s.block
	a.begin(samples, f)
	for i := first; i < end; i++ {
		a.tree(k.treePhi(k.phi, i), chunk(q, i, k.treeQ()))
	}
	return a.end(df, losses)
}

// rowGradient adds one row's ∂R/∂f to df, tree after tree, and returns its K-L
// summed over trees.
func (k *kernel) rowGradient(df, d, q []float32, s *scratch) float64 {
	loss := 0.0
	first, end := k.turns.at(s.unit.Steps[0])
	for i := first; i < end; i++ {
		phi := k.treePhi(k.phi, i)
		reach(s.node, s.s, s.t, phi)
		p := s.node[k.splits:]
		predict(s.g, p, chunk(q, i, k.treeQ()))
		loss += ratios(s.r, d, s.g, 1, s.terms)
		leafMass(s.mass[k.splits:], p, s.r, chunk(s.qT, i, k.treeQ()))
		splitGradients(df, s.mass, s.s, s.t, phi)
	}
	return loss
}

// transposeQ sets s.qT to q with each tree's matrix transposed, once for each
// version of q.
func (k *kernel) transposeQ(q []float32, version uint64, s *scratch) {
	if s.qT != nil && s.qTVersion == version {
		return
	}
	if s.qT == nil {
		s.qT = make([]float32, k.q())
	}
	for i := range k.trees {
		transpose(chunk(s.qT, i, k.treeQ()), chunk(q, i, k.treeQ()), k.labels)
	}
	s.qTVersion = version
}

// Validation implements gradient.Loss: the K-L divergence of the forest's prediction.
func (l *forestLoss) Validation(f []float32, x *gradient.Sample, v *gradient.Values) float64 {
	k, s := l.k, l.s
	q, _ := qOf(v)
	predictForest(s.g, f, q, k.phi, &k.sizes, s)
	return divergence(x.D, s.g)
}
