package ptsvm

import (
	"context"
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/algorithms/kit/softmax"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// The operations (Round.Op).
const (
	opTrain    uint8 = iota + 1 // collected: a machine for each gamma and pair
	opValidate                  // rows, then the K-L divergences with each gamma, weighted
)

// The values that rounds carry (Var.ID), float64.
const (
	varGammas   = 1
	varMachines = 2
)

var (
	_ round.ReduceKernel = (*kernel)(nil)
	_ round.GatherKernel = (*kernel)(nil)
	_ round.Demanding    = (*kernel)(nil)
)

// kernel is the workers' half.
type kernel struct {
	cfg              Config
	features, labels int
	rows             int
	sparse           bool
	key              num.Key // of the folds
}

// scratch is the working memory of a lane.
type scratch struct {
	unit    round.Task
	scaling scaling.Scratch
	model   model
	space   *space
}

// NewScratch implements round.Kernel.
func (k *kernel) NewScratch() any {
	return &scratch{model: newModel(k.features, k.labels), space: newSpace(k.labels)}
}

// Demand implements round.Demanding: the scaled features of all samples, in float64.
func (k *kernel) Demand() (bytes int64, what string) {
	if k.sparse {
		return 0, ""
	}
	return 8 * int64(k.rows) * int64(k.features), "the scaled features of all samples"
}

// Derive implements round.ReduceKernel.
func (k *kernel) Derive(round.Task, *dataset.Data, round.Vars, any) (round.Derived, error) {
	return nil, nil
}

// Gather implements round.GatherKernel: the values of a machine. No bytes say that there are no samples.
func (k *kernel) Gather(ctx context.Context, u round.Task, d *dataset.Data, v round.Vars, _ any) ([]byte, error) {
	if u.Op != opTrain {
		return nil, fmt.Errorf("%s: the task has the unknown operation %d", Name, u.Op)
	}
	refs := d.WithWeight(u.Rows(d))
	if len(refs) == 0 {
		return nil, nil
	}
	s := newSamples(refs, d, scaling.Find(v), k.key)
	gamma, pair := num.Float64s(v.Get(varGammas))[u.ID/pairs(k.labels)], u.ID%pairs(k.labels)
	a, b := 0, 1
	for range pair {
		if b++; b == k.labels {
			a++
			b = a + 1
		}
	}
	s.pair(a, b)
	m, held := newMachine(s), make([]float64, len(refs))
	for fold := range folds {
		if err := m.fit(ctx, gamma, fold); err != nil {
			return nil, err
		}
		for i, own := range s.fold {
			if int(own) == fold {
				held[i] = m.value[i]
			}
		}
	}
	if err := m.fit(ctx, gamma, folds); err != nil {
		return nil, err
	}
	values := make([]float64, k.features+machineMore)
	s.effective(values[:k.features+1], m.w)
	values[k.features+1], values[k.features+2] = sigmoid(held, s.first, s.second)
	return num.Bytes64(values), nil
}

// Run implements round.ReduceKernel.
func (k *kernel) Run(dst *round.Partial, u round.Task, d *dataset.Data, v round.Vars, _ round.Derived,
	working any) error {
	s := working.(*scratch)
	s.unit = u
	if scaling.Run(dst, &s.unit, d, v, &s.scaling) {
		return nil
	}
	if u.Op != opValidate {
		return fmt.Errorf("%s: the task has the unknown operation %d", Name, u.Op)
	}
	machines, refs := num.Float64s(v.Get(varMachines)), s.unit.Rows(d)
	for _, ref := range refs {
		dst.F64[0] += d.Shard(int(ref.Shard)).WeightOf(int(ref.Pos))
	}
	for i := range choices {
		n := len(machines) / len(choices)
		s.model.set(machines[i*n:][:n])
		for _, ref := range refs {
			rows, pos := d.Shard(int(ref.Shard)), int(ref.Pos)
			kl := softmax.KL(rows.Label(pos), s.model.predict(s.space, rows, pos))
			dst.F64[1+i] += float64(rows.WeightOf(pos) * kl)
		}
	}
	return nil
}
