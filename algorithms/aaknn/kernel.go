package aaknn

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/coppice-ldl/coppice/algorithms/kit/rows"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

var (
	_ round.ReduceKernel   = (*kernel)(nil)
	_ round.GatherKernel   = (*kernel)(nil)
	_ round.MemoryReleaser = (*kernel)(nil)
)

// kernel is the workers' half. It is shared by lanes.
type kernel struct {
	config *Config
	labels int

	mu       sync.Mutex // held while the training rows are gathered: other lanes wait
	data     *dataset.Data
	training *training
}

// training is what units that leave a row out read of all training rows.
type training struct {
	kept *dataset.Rows // by original row number
	from *rows.Distances
}

// NewScratch implements round.Kernel.
func (k *kernel) NewScratch() any { return new(scaling.Scratch) }

// Derive implements round.ReduceKernel.
func (k *kernel) Derive(round.Task, *dataset.Data, round.Vars, any) (round.Derived, error) {
	return nil, nil
}

// Run implements round.ReduceKernel: only scaling has sums.
func (k *kernel) Run(dst *round.Partial, u round.Task, d *dataset.Data, v round.Vars, _ round.Derived, s any) error {
	if !scaling.Run(dst, &u, d, v, s.(*scaling.Scratch)) {
		return fmt.Errorf("%s: the task has the unknown operation %d", Name, u.Op)
	}
	return nil
}

// Gather implements round.GatherKernel.
func (k *kernel) Gather(ctx context.Context, u round.Task, d *dataset.Data, v round.Vars, _ any) ([]byte, error) {
	switch u.Op {
	case opRows:
		return rows.Collect(u, d, &wanted), nil
	case opLeftOut:
		t := k.trainingRows(u, d, v)
		losses, err := t.leaveOut(ctx, u.ID*t.kept.N/u.Of, (u.ID+1)*t.kept.N/u.Of)
		return num.Bytes64(losses), err
	}
	return nil, fmt.Errorf("%s: the task has the unknown operation %d", Name, u.Op)
}

// trainingRows returns the training rows. The first unit gathers them, and the others share them.
func (k *kernel) trainingRows(u round.Task, d *dataset.Data, v round.Vars) *training {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.data != d {
		kept := rows.Gather(u, d, &wanted)
		x := scaling.Find(v)
		k.data, k.training = d, &training{kept, rows.NewDistances(kept, x.Scale)}
	}
	return k.training
}

// ReleaseMemory implements round.MemoryReleaser.
func (k *kernel) ReleaseMemory() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.data, k.training = nil, nil
}

// leaveOut predicts the training rows [from, to), each from all others, and returns for each of
// the candidates for k the sum of their K-L.
func (t *training) leaveOut(ctx context.Context, from, to int) ([]float64, error) {
	ks := candidates(t.kept.N)
	x := leaving{
		training: t, losses: make([]float64, len(ks)), nearest: newNearest(ks, t.kept.N),
		brackets: make([]float64, len(ks)*t.kept.Labels),
	}
	s, squares := t.from.NewScratch(), make([]float64, atATime*t.kept.N)
	shard := func(uint32) *dataset.Rows { return t.kept }
	var refs []dataset.RowRef
	for at := from; at < to; at += atATime {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		refs = refs[:0]
		for i := at; i < min(at+atATime, to); i++ {
			refs = append(refs, dataset.RowRef{Pos: uint32(i)})
		}
		t.from.To(squares[:len(refs)*t.kept.N], refs, shard, s)
		for i := range refs {
			x.add(at+i, squares[i*t.kept.N:(i+1)*t.kept.N])
		}
	}
	return x.losses, nil
}

// leaving is the working memory of leaveOut.
type leaving struct {
	*training
	losses   []float64 // of each k
	nearest  *nearest
	brackets []float64 // ks×labels: sums of the labels of rows by bracket
}

// add adds the K-L of one row under each k; squares are its distances, and are changed.
func (x *leaving) add(row int, squares []float64) {
	squares[row] = math.Inf(1)
	x.nearest.find(squares)
	labels := x.kept.Labels
	clear(x.brackets)
	for i, r := range x.nearest.rows {
		b := int(x.nearest.bracket[i])
		addLabel(x.brackets[b*labels:(b+1)*labels], x.kept.Label(int(r)))
	}
	for b := range x.losses {
		sums := x.brackets[b*labels : (b+1)*labels]
		if b > 0 {
			num.Add64(sums, x.brackets[(b-1)*labels:b*labels])
		}
		x.losses[b] += divergence(x.kept.Label(row), sums)
	}
}

// leastDegree is the least degree of a prediction that K-L counts, as measures do.
const leastDegree = 1e-12

// divergence returns the K-L divergence of sums, divided by their sum, from a label distribution.
func divergence(label []float32, sums []float64) (kl float64) {
	total := sum(sums)
	for c, d := range label {
		if d == 0 {
			continue
		}
		p := 1 / float64(len(label))
		if total > 0 {
			p = max(leastDegree, sums[c]/total)
		}
		kl += float64(float64(d) * (num.Log(float64(d)) - num.Log(p)))
	}
	return kl
}
