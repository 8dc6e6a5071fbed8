package contract

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// checkDigest runs the job on one lane, on three lanes, and on three workers which get the
// tasks in blocks that change from round to round, with derived values that they keep or
// not: the model and the counters are the same. So they are where the test rows have other
// features and labels: no round of training may read these.
//
// With the race detector it only runs the job on three lanes: in the others one goroutine computes.
func (j *job) checkDigest(ctx context.Context) error {
	onThreeLanes := func(k round.Kernel) (engine.Executor, error) { return j.local(k, j.data, 3), nil }
	if raceDetector {
		_, _, err := j.runOn(ctx, onThreeLanes)
		return err
	}
	want, counters, err := j.runOn(ctx, func(k round.Kernel) (engine.Executor, error) { return j.local(k, j.data, 1), nil })
	if err != nil {
		return err
	}
	executors := map[string]func(round.Kernel) (engine.Executor, error){
		"on three lanes":             onThreeLanes,
		"on three workers in blocks": func(round.Kernel) (engine.Executor, error) { return newCrowd(j, 3) },
		"with other test rows":       func(k round.Kernel) (engine.Executor, error) { return j.local(k, j.otherTestRows(), 1), nil },
	}
	for name, make := range executors {
		got, others, err := j.runOn(ctx, make)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if got != want || !maps.Equal(others, counters) {
			return fmt.Errorf("%s the model has the digest %.12s and the counters %v, on one lane %.12s and %v", name, got, others, want, counters)
		}
	}
	return nil
}

// otherTestRows returns the job's data with other features and labels in the test rows.
func (j *job) otherTestRows() *dataset.Data {
	d := dataset.NewData(j.manifest, j.roles)
	for i, shard := range j.shards {
		other := *shard
		other.X, other.D = slices.Clone(shard.X), slices.Clone(shard.D)
		other.Value, other.Interval = slices.Clone(shard.Value), slices.Clone(shard.Interval)
		for pos, row := range other.Row {
			if j.roles[row] != dataset.Test {
				continue
			}
			var x []float32
			if other.Sparse {
				_, x = other.NonZeros(pos)
			} else {
				x = other.Dense(pos)
			}
			for k := range x {
				x[k] *= -3
			}
			label := other.Label(pos)
			copy(label, append(slices.Clone(label[1:]), label[0]))
			if other.Value != nil {
				other.Value[pos] = scaleLow
			}
			if other.Interval != nil {
				other.Interval[2*pos], other.Interval[2*pos+1] = scaleLow-1, scaleLow+1
			}
		}
		d.SetShard(i, &other)
	}
	return d
}

// runOn runs the job to its end and returns the model's digest and the counters.
func (j *job) runOn(ctx context.Context, make func(round.Kernel) (engine.Executor, error)) (string, map[string]uint64, error) {
	k, err := j.kernel()
	if err != nil {
		return "", nil, err
	}
	x, err := make(k)
	if err != nil {
		return "", nil, err
	}
	t, err := j.train(ctx, x, ignore)
	if err != nil {
		return "", nil, err
	}
	digest, err := j.digest(t)
	return digest, t.Counters(), err
}

// train runs the job to its end.
func (j *job) train(ctx context.Context, x engine.Executor, observe engine.Observer) (algorithms.Trainer, error) {
	t, err := j.trainer(nil)
	if err != nil {
		return nil, err
	}
	return t, engine.Drive(ctx, t, 0, x, func(n uint64, t round.Trainer) error {
		if n >= maxRounds {
			return errEndless
		}
		return observe(n, t)
	})
}

// crowd is an executor whose tasks are computed by workers, each with a kernel, data and a
// cache of its own.
type crowd struct {
	workers []*member
	tree    engine.Tree
}

type member struct {
	kernel  round.Kernel
	data    *dataset.Data
	cache   *engine.DerivedCache
	scratch any
	tree    engine.Tree
}

func newCrowd(j *job, n int) (*crowd, error) {
	c := &crowd{}
	for i := range n {
		k, err := j.kernel()
		if err != nil {
			return nil, err
		}
		limit := engine.DerivedLimit * (i % 2) // some keep nothing
		c.workers = append(c.workers, &member{kernel: k, data: j.dataOf(0, len(j.shards)), cache: engine.NewDerivedCache(limit), scratch: k.NewScratch()})
	}
	return c, nil
}

// Do implements engine.Executor.
func (c *crowd) Do(ctx context.Context, n uint64, r *round.Round, res *round.Result) error {
	*res = round.Result{}
	if how := r.Reduce(); how != nil {
		c.tree.Reset(r.Tasks, how.Shape)
	} else {
		res.Gathered = make([][]byte, r.Tasks)
	}
	blocks := num.NewStream(num.NewKey(seed, "algorithmtest/blocks"), n, 0)
	of := make([]uint64, r.Tasks) // the worker of each task
	for u := range of {
		if of[u] = blocks.Uint64n(uint64(len(c.workers))); u > 0 && blocks.Uint64n(3) > 0 {
			of[u] = of[u-1]
		}
	}
	for i, w := range c.workers {
		if err := w.do(ctx, r, res, &c.tree, func(u int) bool { return of[u] == uint64(i) }); err != nil {
			return err
		}
	}
	if r.Reduce() != nil {
		res.Sum = c.tree.Root()
	}
	return nil
}

// do computes the worker's tasks, in descending order, and hands on the nodes of the
// reduction that they fill.
func (w *member) do(ctx context.Context, r *round.Round, res *round.Result, to *engine.Tree, mine func(int) bool) (err error) {
	how := r.Gather()
	if how == nil {
		w.tree.Reset(r.Tasks, r.Reduce().Shape)
	}
	for id := r.Tasks - 1; id >= 0; id-- {
		switch u := r.Task(id); {
		case !mine(id) || how != nil && how.Skips(id):
		case how != nil:
			res.Gathered[id], err = engine.RunGather(ctx, w.kernel, u, w.data, r.Vars, subJobs(w.data), w.scratch)
		default:
			p := w.tree.Partial()
			if err = engine.RunTask(p, w.kernel, u, w.data, r.Vars, w.cache, w.scratch); err == nil {
				_, err = w.tree.Put(0, id, p)
			}
		}
		if err != nil {
			return err
		}
	}
	w.tree.Nodes(func(level, i int, p *round.Partial) {
		if err == nil {
			_, err = to.Put(level, i, clonePartial(p))
		}
	})
	return err
}
