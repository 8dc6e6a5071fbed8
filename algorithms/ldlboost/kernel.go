package ldlboost

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"

	"github.com/coppice-ldl/coppice/algorithms/kit/binning"
	"github.com/coppice-ldl/coppice/algorithms/kit/boost"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// The operations of the rounds.
const (
	opStart     uint8 = iota + 1 // the training rows, the sums of their degrees, and their weight
	opBins                       // the values of the training rows by column
	opHistogram                  // the loss of the training rows before a tree, and the sums of some nodes
	opValidate                   // the weight of the validation rows and the sum of their losses
)

// The variables of the rounds: the bins and the request of a histogram round, and the weight of the training rows, if
// rows have weights. boost.Course has more.
const (
	varBins    = 100
	varRequest = 101
	varWeight  = 102
)

var (
	_ round.ReduceKernel = (*kernel)(nil)
	_ round.GatherKernel = (*kernel)(nil)
	_ round.Demanding    = (*kernel)(nil)
)

// kernel implements both kinds of kernels. It is safe for concurrent use.
type kernel struct {
	job
	form              boost.Form
	binKey, columnKey num.Key
	needs             int64 // see Demand

	mu    sync.Mutex // guards all that follows
	data  *dataset.Data
	bins  *binning.Bins
	parts map[partKey]*part
}

// partKey is a range of shards and the roles of the rows.
type partKey struct {
	lo, hi int
	roles  dataset.Roles
}

func newKernel(c *Config, m *dataset.Manifest, seed uint64, incomplete bool, demand int64) *kernel {
	return &kernel{
		job: job{cfg: c, labels: m.Labels, incomplete: incomplete, weighted: m.HasWeights,
			rowKey: num.NewKey(seed, "ldlboost/rows")},
		form: boost.VectorForm(m.Features, m.Labels, c.Leaves), binKey: num.NewKey(seed, "ldlboost/bins"),
		columnKey: columnKey(seed), needs: demand,
	}
}

// columnKey draws the columns of trees, in kernels and in the trainer.
func columnKey(seed uint64) num.Key { return num.NewKey(seed, "ldlboost/columns") }

// NewScratch implements round.Kernel.
func (k *kernel) NewScratch() any { return new(adder) }

// Demand implements round.Demanding.
func (k *kernel) Demand() (bytes int64, what string) {
	return k.needs, "scores, derivatives and bins of all samples; fewer bins or leaves need less"
}

// ReleaseMemory implements round.MemoryReleaser. A later task makes everything again.
func (k *kernel) ReleaseMemory() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.data == nil {
		return
	}
	k.data, k.bins, k.parts = nil, nil, nil
	runtime.GC()
}

// part returns what is kept of a task's rows, and the bins, which v has for training rows. It drops parts of rows that
// a refit divides otherwise, and parts whose tasks moved to other workers.
func (k *kernel) part(u round.Task, d *dataset.Data, v round.Vars) (*part, *binning.Bins, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.data != d {
		k.data, k.bins, k.parts = d, nil, make(map[partKey]*part)
	}
	if u.Op == opHistogram && k.bins == nil {
		bins, err := decodeBins(v.Get(varBins), d.Manifest, k.cfg.Bins)
		if err != nil {
			return nil, nil, err
		}
		k.bins = bins
	}
	lo, hi := u.Shards(len(d.Manifest.Shards))
	key := partKey{lo, hi, u.Roles}
	p, rounds := k.parts[key], boost.Rounds(v)
	if p == nil {
		p = newPart(&k.job, u, d)
		k.parts[key] = p
	}
	p.asked = rounds
	for other, q := range k.parts {
		if other.roles != u.Roles && other.roles&u.Roles != 0 || rounds-q.asked > unasked(rounds) {
			delete(k.parts, other)
		}
	}
	return p, k.bins, nil
}

// unasked is how many trees may grow before a part is dropped that no task asks for. trees is the number of trees of
// the model. If the task of the part comes back, all trees are added to its rows again. For each 300 trees, that takes
// about as long as the growth of one. So tasks that move all the time cost little.
func unasked(trees int) int { return 8 + trees/32 }

// Derive implements round.ReduceKernel.
func (k *kernel) Derive(round.Task, *dataset.Data, round.Vars, any) (round.Derived, error) {
	return nil, nil
}

// Run implements round.ReduceKernel.
func (k *kernel) Run(dst *round.Partial, u round.Task, d *dataset.Data, v round.Vars, _ round.Derived,
	scratch any) error {
	switch u.Op {
	case opStart:
		sumKnown(dst.F64, u, d)
		return nil
	case opHistogram, opValidate:
	default:
		return errOp(u.Op)
	}
	p, bins, err := k.part(u, d, v)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.sums.Advance(&k.form, d, v); err != nil {
		return err
	}
	scores := boost.Scores{Start: boost.First(v), Factor: k.cfg.LearningRate}
	if u.Op == opValidate {
		dst.F64[0], dst.F64[1] = p.validate(d, &scores)
		return nil
	}
	a := scratch.(*adder)
	r := &a.request
	if err := r.decode(v.Get(varRequest)); err != nil {
		return err
	}
	l := a.prepare(&k.job, bins, k.columnKey, r.tree)
	if err := r.check(bins, dst, l.size(), k.weighted); err != nil {
		return err
	}
	if !p.binned {
		p.findBins(d, bins)
	}
	if !p.known || p.tree != r.tree {
		unit, err := k.weightUnit(v)
		if err != nil {
			return err
		}
		p.derive(d, &scores, r.tree, unit)
	}
	p.apply(r.splits, bins)
	dst.F64[0] += p.loss
	all := sumsOf(dst)
	for _, node := range r.build {
		n := p.nodes[node]
		own, rows := all.next(l.size()), p.rows[n.from:n.to]
		if node == 0 { // the sums of another node follow from its parent's split
			a.addNode(own, rows, p, l)
		}
		a.add(own, rows, p, bins, l)
	}
	return nil
}

func errOp(op uint8) error { return fmt.Errorf("the task has the unknown operation %d", op) }

// Gather implements round.GatherKernel: it returns the values of the task's rows.
func (k *kernel) Gather(_ context.Context, u round.Task, d *dataset.Data, v round.Vars, _ any) ([]byte, error) {
	if u.Op != opBins {
		return nil, errOp(u.Op)
	}
	unit, err := k.weightUnit(v)
	if err != nil {
		return nil, err
	}
	return appendValues(nil, k.binKey, u, d, unit), nil
}

var errWeight = errors.New("the weight of the training samples is damaged")

// weightUnit returns the unit of weights in a round: 1 without weights.
func (k *kernel) weightUnit(v round.Vars) (float64, error) {
	if !k.weighted {
		return 1, nil
	}
	b := v.Get(varWeight)
	if len(b) != 8 {
		return 0, errWeight
	}
	if x := num.Float64s(b)[0]; x > 0 && x <= math.MaxFloat64 {
		return unitOf(x), nil
	}
	return 0, errWeight
}
