package aaknn

import (
	"context"
	"fmt"
	"sync"

	"github.com/coppice-ldl/coppice/algorithms/kit/rows"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// The operations of rounds (Round.Op).
const (
	opRows    uint8 = iota + 1 // collects the training rows
	opLeftOut                  // predicts a slice of the training rows from the others
)

// wanted are the rows that a model keeps.
var wanted = rows.Wanted{Labels: true}

var (
	_ round.ReduceKernel   = (*kernel)(nil)
	_ round.GatherKernel   = (*kernel)(nil)
	_ round.MemoryReleaser = (*kernel)(nil)
)

// kernel is the workers' half. It is shared by lanes.
type kernel struct {
	config  *Config
	labels  int
	targets bool // labels are targets in bounds

	mu       sync.Mutex // held while the training rows are gathered: other lanes wait
	data     *dataset.Data
	training *training
}

// training is what units that leave a row out read of all training rows.
type training struct {
	kept    *dataset.Rows // by original row number
	near    *rows.Neighbours
	targets bool // as kernel.targets
}

// lane is the working memory of one lane.
type lane struct {
	scaling scaling.Scratch
	leaving *leaving // of the kernel's training rows; nil: not made yet
}

// NewScratch implements round.Kernel.
func (k *kernel) NewScratch() any { return new(lane) }

// Derive implements round.ReduceKernel.
func (k *kernel) Derive(round.Task, *dataset.Data, round.Vars, any) (round.Derived, error) {
	return nil, nil
}

// Run implements round.ReduceKernel: only scaling has sums.
func (k *kernel) Run(dst *round.Partial, u round.Task, d *dataset.Data, v round.Vars, _ round.Derived, s any) error {
	if !scaling.Run(dst, &u, d, v, &s.(*lane).scaling) {
		return fmt.Errorf("aaknn: the task has the unknown operation %d", u.Op)
	}
	return nil
}

// Gather implements round.GatherKernel.
func (k *kernel) Gather(ctx context.Context, u round.Task, d *dataset.Data, v round.Vars, s any) ([]byte, error) {
	switch u.Op {
	case opRows:
		return rows.Collect(u, d, &wanted), nil
	case opLeftOut:
		t, own := k.trainingRows(u, d, v), s.(*lane)
		if own.leaving == nil || own.leaving.training != t {
			own.leaving = newLeaving(t)
		}
		losses, err := own.leaving.out(ctx, u.ID*t.kept.N/u.Of, (u.ID+1)*t.kept.N/u.Of)
		return num.Bytes64(losses), err
	}
	return nil, fmt.Errorf("aaknn: the task has the unknown operation %d", u.Op)
}

// trainingRows returns the training rows. The first unit gathers them, and the others share them.
func (k *kernel) trainingRows(u round.Task, d *dataset.Data, v round.Vars) *training {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.data != d {
		kept := rows.Gather(u, d, &wanted)
		x := scaling.Find(v)
		k.data, k.training = d, &training{kept, rows.NewNeighbours(kept, x.Scale), k.targets}
	}
	return k.training
}

// ReleaseMemory implements round.MemoryReleaser.
func (k *kernel) ReleaseMemory() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.data, k.training = nil, nil
}

// leaving predicts training rows from all others. It is the working memory of one lane.
type leaving struct {
	*training
	ks       []int
	search   *rows.Search
	logs     []float64 // labels: the logarithms of a row's degrees that are not 0
	brackets []float64 // ks×labels: the sums of the labels of the nearest rows
}

func newLeaving(t *training) *leaving {
	ks, labels := candidates(t.kept.N), t.kept.Labels
	return &leaving{training: t, ks: ks, search: t.near.NewSearch(ks), logs: make([]float64, labels),
		brackets: make([]float64, len(ks)*labels)}
}

// atATime is how many rows are left out before the context is looked at.
const atATime = 64

// out predicts the rows [from, to), each from all others, and returns for each of the candidates for k
// the sum of their losses: K-L, or the squared error of targets.
func (x *leaving) out(ctx context.Context, from, to int) ([]float64, error) {
	losses := make([]float64, len(x.ks))
	for at := from; at < to; at += atATime {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		x.search.FindOthers(at, min(at+atATime, to), func(row int, nearest []uint32) { x.add(losses, row, nearest) })
	}
	return losses, nil
}

// add adds the loss of one row under each k.
func (x *leaving) add(losses []float64, row int, nearest []uint32) {
	label, labels := x.kept.Label(row), x.kept.Labels
	for c, d := range label {
		if d != 0 && !x.targets {
			x.logs[c] = num.Log(float64(d))
		}
	}
	clear(x.brackets)
	done := 0
	for b, k := range x.ks {
		sums := x.brackets[b*labels : (b+1)*labels]
		num.AddRows64(sums, x.kept.D, nearest[done:k])
		if done = k; b > 0 {
			num.Add64(sums, x.brackets[(b-1)*labels:b*labels])
		}
		if x.targets {
			losses[b] += squaredError(label, sums, k)
		} else {
			losses[b] += divergence(label, x.logs, sums)
		}
	}
}

// squaredError returns the mean over targets of the squared error of sums of k rows, divided by k.
func squaredError(targets []float32, sums []float64, k int) (loss float64) {
	for c, q := range targets {
		e := sums[c]/float64(k) - float64(q)
		loss += float64(e * e)
	}
	return loss / float64(len(targets))
}

// leastDegree is the least degree of a prediction that K-L counts, as measures do.
const leastDegree = 1e-12

// divergence returns the K-L divergence of sums, divided by their sum, from a label distribution; logs
// are its logarithms.
func divergence(label []float32, logs, sums []float64) (kl float64) {
	total := sum(sums)
	for c, d := range label {
		if d == 0 {
			continue
		}
		p := 1 / float64(len(label))
		if total > 0 {
			p = max(leastDegree, sums[c]/total)
		}
		kl += float64(float64(d) * (logs[c] - num.Log(p)))
	}
	return kl
}
