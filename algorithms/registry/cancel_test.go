package registry_test

import (
	"context"
	"errors"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/contract"
	"github.com/coppice-ldl/coppice/internal/num"
)

// drawnSet describes a dataset in eight shards.
func drawnSet() *dataset.Manifest {
	const rows, features = 1200, 6
	return &dataset.Manifest{Format: dataset.ManifestFormat, Rows: rows, Features: features, Labels: 3,
		NonZeros: rows * features, Shards: make([]dataset.ShardRef, 8)}
}

// drawnData draws the rows of m.
func drawnData(t *testing.T, m *dataset.Manifest, split dataset.Split) *dataset.Data {
	t.Helper()
	roles, err := split.Assign(m.Rows, nil)
	if err != nil {
		t.Fatal(err)
	}
	d, s := dataset.NewData(m, roles), num.NewStream(num.NewKey(3, "cancel"), 0, 0)
	for i := range m.Shards {
		r := &dataset.Rows{Features: m.Features, Labels: m.Labels}
		for row := i; row < m.Rows; row += len(m.Shards) {
			r.N++
			r.Row = append(r.Row, uint32(row))
			for range m.Features {
				r.X = append(r.X, 1+float32(s.Uint64n(1000))/1000)
			}
			x := r.X[len(r.X)-m.Features:]
			of := []float32{x[0] * x[1], x[2] * x[2], x[3] + float32(s.Uint64n(10))/10}
			sum := of[0] + of[1] + of[2]
			r.D = append(r.D, of[0]/sum, of[1]/sum, of[2]/sum)
		}
		d.SetShard(i, r)
	}
	return d
}

// cancelling cancels its job while a task of a round is computed.
type cancelling struct {
	*engine.Local
	round  uint64 // of the task
	cancel context.CancelFunc

	kernel interface {
		round.ReduceKernel
		round.GatherKernel
	}
	armed        bool
	tasks, after int // of the round, and those that begin once the job is cancelled
}

// Do implements engine.Executor.
func (c *cancelling) Do(ctx context.Context, n uint64, r *round.Round, res *round.Result) error {
	c.armed = n == c.round
	return c.Local.Do(ctx, n, r, res)
}

// NewScratch implements round.Kernel.
func (c *cancelling) NewScratch() any { return c.kernel.NewScratch() }

// Derive implements round.ReduceKernel.
func (c *cancelling) Derive(u round.Task, d *dataset.Data, v round.Vars, scratch any) (round.Derived, error) {
	return c.kernel.Derive(u, d, v, scratch)
}

// Run implements round.ReduceKernel.
func (c *cancelling) Run(dst *round.Partial, u round.Task, d *dataset.Data, v round.Vars, of round.Derived,
	scratch any) error {
	if c.armed {
		if c.tasks++; c.tasks == 2 {
			c.cancel()
		} else if c.tasks > 2 {
			c.after++
		}
	}
	return c.kernel.Run(dst, u, d, v, of, scratch)
}

// Gather implements round.GatherKernel.
func (c *cancelling) Gather(ctx context.Context, u round.Task, d *dataset.Data, v round.Vars, scratch any) ([]byte,
	error) {
	return c.kernel.Gather(ctx, u, d, v, scratch)
}

// TestCancelledTree cancels a job during the second of the eight tasks of a round in the middle of a tree that all
// workers grow. The job ends at once: no other task begins, and the trainer takes nothing of the round. From its state,
// the same model follows.
func TestCancelledTree(t *testing.T) {
	for name, set := range map[string]param.Values{
		"ldlboost": {"rounds": int64(6), "refit": false, "leaf_rows": int64(4)},
		"rf":       {"split": "histogram", "trees": int64(12), "min_samples": int64(4), "bins": int64(8)},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := registry.Find(name)
			if err != nil {
				t.Fatal(err)
			}
			j := contract.Job(t, a, set, drawnSet(), dataset.Split{Seed: 2})
			d := drawnData(t, drawnSet(), j.Split)
			var steps []uint64 // after each round
			want := contract.Digest(t, a, contract.Train(t, a, j, d, 1, func(tr algorithms.Trainer) algorithms.Trainer {
				steps = append(steps, tr.Progress().Step)
				return tr
			}))
			at := len(steps) / 2
			for at < len(steps) && (steps[at-2] == 0 || steps[at-2] != steps[at]) {
				at++ // until the rounds before and after are of the same tree
			}
			if at == len(steps) {
				t.Fatalf("no tree takes three rounds: steps %v", steps)
			}
			cancelTree(t, a, j, d, uint64(at), want)
		})
	}
}

// cancelTree cancels a job in a round, continues from its state, and compares the digest of the model.
func cancelTree(t *testing.T, a algorithms.Algorithm, j *round.Job, d *dataset.Data, at uint64, want string) {
	t.Helper()
	tr, k := contract.Begin(t, a, j, d.Manifest)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	x := &cancelling{round: at, cancel: cancel, kernel: k.(interface {
		round.ReduceKernel
		round.GatherKernel
	})}
	x.Local = engine.NewLocal(x, d, 1, nil)
	folded := uint64(0)
	err := engine.Drive(ctx, tr, 0, x, func(n uint64, _ round.Trainer) error { folded = n; return nil })
	if !errors.Is(err, context.Canceled) || folded != at || x.tasks != 2 || x.after > 0 {
		t.Fatalf("error %v after %d rounds, want %d; %d tasks of the round began", err, folded, at, x.tasks)
	}
	tr = contract.Follow(t, contract.Cut(t, a, j, d.Manifest)(tr), contract.Lanes(t, k, d, 1), nil)
	if got := contract.Digest(t, a, tr); got != want {
		t.Errorf("after the end, the model is %s, want %s", got, want)
	}
}
