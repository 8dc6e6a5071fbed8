package ldlf

import (
	"fmt"
	"slices"

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

// forestLoss is the loss of a forest, in one lane: see gradient.Loss. In steps it is Eq. 3 less
// the labels' entropy, summed over the trees that the mini-batch trains; in validations the K-L of the forest's
// prediction.
type forestLoss struct {
	k *kernel
	s *scratch
}

// routed is a routing while its blocks are derived, by several lanes perhaps.
type routed struct {
	k      *kernel
	r      *routing
	refs   []dataset.RowRef
	data   *dataset.Data
	values *gradient.Values
	of     *gradient.Window
}

// leafShare is an iteration of Eq. 12 over derived routing. Idle lanes share its trees, of
// which none reads what another computes.
type leafShare struct {
	k       *kernel
	routing *routing
	q       []float32
	t       []float64 // trees×leaves×labels
	kl      []float64 // trees×columns of each block; nil: nobody wants it
}

// leafSpace is the working memory of Eq. 12's sums.
type leafSpace struct {
	weight []float32 // of a block's columns
	r      []float64 // labels×columns: ratios, widened
	ratio  []float32 // labels×columns: ratios that nobody reads
	kl     []float64 // trees×columns, of one block or of each
	sums   []float64 // of one tree, to be transposed
	tile   *num.Tile
	routed routed
	share  leafShare
}

// begin makes room for a block of so many columns, and a tree of so many values of q.
func (l *leafSpace) begin(labels, columns, q int) {
	l.r = slices.Grow(l.r[:0], labels*columns)[:labels*columns]
	l.ratio = slices.Grow(l.ratio[:0], labels*columns)[:labels*columns]
	l.sums = slices.Grow(l.sums[:0], q)[:q]
	if l.tile == nil {
		l.tile = new(num.Tile)
	}
}
