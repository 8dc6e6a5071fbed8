package boost

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// The operations of the rounds.
const (
	opStart    uint8 = iota + 1 // the training rows, the sums of their degrees, and their weight
	opGrow                      // tree number Unit.ID of a boosting round, on the whole dataset's training rows
	opValidate                  // the weight of the validation rows and the sum of their losses
)

var (
	_ round.ReduceKernel = (*kernel)(nil)
	_ round.GatherKernel = (*kernel)(nil)
)

// kernel implements both kinds of kernels. It is safe for concurrent use.
type kernel struct {
	variant *Variant
	cfg     *Config
	form    Form

	mu        sync.Mutex // guards all that follows, and is held while it is made: other lanes wait for it
	data      *dataset.Data
	training  *training
	validated map[[2]int]*validation // by the range of shards
	growers   []*grower              // idle
}

// validation is what a kernel keeps of the validation rows of some shards.
type validation struct {
	mu   sync.Mutex
	sums *RowSums
	f    []float64 // of one row
}

func newKernel(v *Variant, c *Config, m *dataset.Manifest) *kernel {
	return &kernel{variant: v, cfg: c, form: newForm(v, c, m.Features, m.Labels)}
}

// NewScratch implements round.Kernel. There is no scratch: the kernel owns all memory, so that
// ReleaseMemory can free it.
func (k *kernel) NewScratch() any { return nil }

// ReleaseMemory implements round.MemoryReleaser. A later unit makes everything again.
func (k *kernel) ReleaseMemory() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.data == nil {
		return
	}
	k.data, k.training, k.validated, k.growers = nil, nil, nil, nil
	runtime.GC()
}

// keep prepares for units on d. The caller holds k.mu.
func (k *kernel) keep(d *dataset.Data) {
	if k.data != d {
		k.data, k.training, k.validated = d, nil, make(map[[2]int]*validation)
	}
}

// Derive implements round.ReduceKernel.
func (k *kernel) Derive(round.Task, *dataset.Data, round.Vars, any) (round.Derived, error) {
	return nil, nil
}

// Run implements round.ReduceKernel.
func (k *kernel) Run(dst *round.Partial, u round.Task, d *dataset.Data, v round.Vars, _ round.Derived, _ any) error {
	switch u.Op {
	case opStart:
		SumDegrees(dst.F64, u, d)
		return nil
	case opValidate:
		return k.validate(dst.F64, u, d, v)
	}
	return errOp(u.Op)
}

func errOp(op uint8) error { return fmt.Errorf("the task has the unknown operation %d", op) }

// SumDegrees counts the rows of a weight above 0, and adds up their degrees and, where dst has room for it, their
// weight. Degrees are rounded to multiples of a power of two, so that sums are exact without weights. Degrees that are
// missing are 0.
func SumDegrees(dst []float64, u round.Task, d *dataset.Data) {
	unit := float64(uint64(1) << bitsFor(d.Manifest.Rows))
	labels := d.Manifest.Labels
	for _, ref := range u.Rows(d) {
		shard := d.Shard(int(ref.Shard))
		weight := shard.WeightOf(int(ref.Pos))
		if weight == 0 {
			continue
		}
		dst[0]++
		if len(dst) > 1+labels {
			dst[1+labels] += weight
		}
		for c, degree := range shard.Label(int(ref.Pos)) {
			if degree == degree {
				dst[1+c] += float64(weight * (float64(RoundToInt(float64(float64(degree)*unit))) / unit))
			}
		}
	}
}

// validate adds up the weights of the unit's rows and their losses.
func (k *kernel) validate(dst []float64, u round.Task, d *dataset.Data, v round.Vars) error {
	x := k.validation(u, d)
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.sums.Advance(&k.form, d, v); err != nil {
		return err
	}
	s := Scores{num.Float64s(v.Get(varStart)), factor(k.variant, k.cfg, k.form.labels)}
	labels := k.form.labels
	for i, ref := range x.sums.Refs {
		copy(x.f, x.sums.Sums[i*labels:])
		s.Apply(x.f)
		shard := d.Shard(int(ref.Shard))
		weight := shard.WeightOf(int(ref.Pos))
		dst[0] += weight
		dst[1] += float64(weight * ExactLoss(LossOf(shard.Label(int(ref.Pos)), x.f, LogSumExp(x.f))))
	}
	return nil
}

// validation returns what is kept of the unit's rows.
func (k *kernel) validation(u round.Task, d *dataset.Data) *validation {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keep(d)
	lo, hi := u.Shards(len(d.Manifest.Shards))
	x := k.validated[[2]int{lo, hi}]
	if x == nil {
		x = &validation{sums: NewRowSums(d.WithWeight(u.Rows(d)), k.form.labels), f: make([]float64, k.form.labels)}
		k.validated[[2]int{lo, hi}] = x
	}
	return x
}

// Gather implements round.GatherKernel: it grows one tree and returns its encoded form.
func (k *kernel) Gather(ctx context.Context, u round.Task, d *dataset.Data, v round.Vars, _ any) ([]byte, error) {
	if u.Op != opGrow {
		return nil, errOp(u.Op)
	}
	t, gradients, g, err := k.acquire(u, d, v)
	if err != nil {
		return nil, err
	}
	defer k.release(t, gradients, g)
	tree, err := g.grow(ctx, t, gradients, u.ID)
	if err != nil {
		return nil, err
	}
	return tree.Encode(), nil
}

// acquire returns the training rows, the gradients of the round and a grower. The first unit of a round
// makes the gradients, and the others share them.
func (k *kernel) acquire(u round.Task, d *dataset.Data, v round.Vars) (*training, *Gradients, *grower, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keep(d)
	if k.training == nil || k.training.roles != u.Roles {
		refs := d.WithWeight(u.Rows(d))
		if len(refs) == 0 {
			return nil, nil, nil, algorithms.ErrNoRows
		}
		k.training = nil // its memory is free while the next is made
		t, err := newTraining(d, refs, k.cfg.LeafRows)
		if err != nil {
			return nil, nil, nil, err
		}
		t.roles, k.training = u.Roles, t
	}
	gradients, err := k.training.gradients(k, d, v)
	if err != nil {
		return nil, nil, nil, err
	}
	gradients.users++
	if n := len(k.growers); n > 0 {
		g := k.growers[n-1]
		k.growers = k.growers[:n-1]
		return k.training, gradients, g, nil
	}
	return k.training, gradients, newGrower(k.variant, k.cfg, k.form.labels), nil
}

// release takes back what acquire returned.
func (k *kernel) release(t *training, gradients *Gradients, g *grower) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.growers = append(k.growers, g)
	if gradients.users--; gradients.users == 0 && gradients != t.current {
		t.spare = gradients
	}
}

// gradients returns the predictions of the training rows after the rounds that v has.
func (t *training) gradients(k *kernel, d *dataset.Data, v round.Vars) (*Gradients, error) {
	if err := t.sums.Advance(&k.form, d, v); err != nil {
		return nil, err
	}
	if t.current != nil && t.current.rounds == t.sums.rounds {
		return t.current, nil
	}
	if t.current != nil && t.current.users == 0 {
		t.spare = t.current
	}
	g := t.spare
	if g == nil {
		g = newGradients(t.labels, t.heavy, k.form.labels)
	}
	t.current, t.spare = g, nil
	g.rounds = t.sums.rounds
	g.predict(t, &Scores{num.Float64s(v.Get(varStart)), factor(k.variant, k.cfg, k.form.labels)})
	return g, nil
}
