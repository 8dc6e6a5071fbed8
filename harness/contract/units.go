package contract

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/internal/num"
)

// checkUnits holds the tasks of a job that runs against the same tasks computed apart: each
// by a kernel of its own, with scratch memory of its own, without a cache of derived values,
// on data that has the task's shards only, with idle lanes; and in descending order by one kernel, with the
// scratch memory of the tasks before. The bytes are the same. Neither kernel changes the
// data or the values.
func (j *job) checkTasks(ctx context.Context) error {
	before := j.fingerprint()
	t, x, err := j.start()
	if err != nil {
		return err
	}
	other, err := newApart(j)
	if err != nil {
		return err
	}
	err = engine.Drive(ctx, t, 0, executorFunc(func(ctx context.Context, n uint64, r *round.Round,
		res *round.Result) error {
		if n == maxRounds {
			return errEndless
		}
		if err := x.Do(ctx, n, r, res); err != nil {
			return err
		}
		if !mostly(int(n)) {
			return nil
		}
		return other.compare(ctx, r, res)
	}), ignore)
	if err == nil && j.fingerprint() != before {
		return fmt.Errorf("kernels changed the rows")
	}
	return err
}

func ignore(uint64, round.Trainer) error { return nil }

// executorFunc is an engine.Executor.
type executorFunc func(ctx context.Context, n uint64, r *round.Round, res *round.Result) error

// Do implements engine.Executor.
func (f executorFunc) Do(ctx context.Context, n uint64, r *round.Round, res *round.Result) error {
	return f(ctx, n, r, res)
}

// apart computes tasks again.
type apart struct {
	j       *job
	kernel  round.Kernel // of all rounds, in descending order
	cache   *engine.DerivedCache
	scratch any
}

func newApart(j *job) (*apart, error) {
	k, err := j.kernel()
	if err != nil {
		return nil, err
	}
	return &apart{j: j, kernel: k, cache: engine.NewDerivedCache(engine.DerivedLimit), scratch: k.NewScratch()}, nil
}

// compare computes the round's tasks twice and holds them against its result.
func (a *apart) compare(ctx context.Context, r *round.Round, res *round.Result) error {
	if how := r.Gather(); how != nil {
		for id := r.Tasks - 1; id >= 0; id-- {
			if how.Skips(id) {
				continue
			}
			if err := a.compareGathered(ctx, r.Task(id), r, res.Gathered[id]); err != nil {
				return err
			}
		}
		return nil
	}
	var descending, alone engine.Tree
	descending.Reset(r.Tasks, r.Reduce().Shape)
	alone.Reset(r.Tasks, r.Reduce().Shape)
	for id := r.Tasks - 1; id >= 0; id-- {
		u := r.Task(id)
		p, q := descending.Partial(), alone.Partial()
		if err := engine.RunTask(p, a.kernel, u, a.j.data, r.Vars, a.cache, a.scratch); err != nil {
			return err
		}
		if err := a.alone(u, func(k round.Kernel, lo, hi int) error {
			u.Lanes = helpers{k}
			return engine.RunTask(q, k, u, a.j.dataOf(lo, hi), r.Vars, engine.NewDerivedCache(0), k.NewScratch())
		}); err != nil {
			return err
		}
		if !samePartial(p, q) {
			return fmt.Errorf("unit %d of %d (%s) by itself is not what it is after others", id, r.Tasks, r.Kind)
		}
		for tree, p := range map[*engine.Tree]*round.Partial{&descending: p, &alone: q} {
			if _, err := tree.Put(0, id, p); err != nil {
				return err
			}
		}
	}
	if !samePartial(descending.Root(), res.Sum) || !samePartial(alone.Root(), res.Sum) {
		return fmt.Errorf("the units (%s) in descending order have another sum than in ascending order", r.Kind)
	}
	return nil
}

// helpers are idle lanes: three, as it seems, which compute the parts of a task in descending
// order.
type helpers struct{ round.Kernel }

// Idle implements round.Lanes.
func (helpers) Idle() int { return 3 }

// Do implements round.Lanes.
func (h helpers) Do(n int, p round.Parts) {
	scratch := [2]any{h.NewScratch(), h.NewScratch()}
	for i := n - 1; i >= 0; i-- {
		p.Part(i, scratch[i%2])
	}
}

// alone calls f with a new kernel and the range of the task's shards.
func (a *apart) alone(u round.Task, f func(k round.Kernel, lo, hi int) error) error {
	k, err := a.j.kernel()
	if err != nil {
		return err
	}
	lo, hi := u.Shards(len(a.j.shards))
	if err := f(k, lo, hi); err != nil {
		return fmt.Errorf("by itself: %w", err)
	}
	return nil
}

func (a *apart) compareGathered(ctx context.Context, u round.Task, r *round.Round, want []byte) error {
	got, err := engine.RunGather(ctx, a.kernel, u, a.j.data, r.Vars, subJobs(a.j.data), a.scratch)
	if err != nil {
		return err
	}
	var alone []byte
	err = a.alone(u, func(k round.Kernel, lo, hi int) (err error) {
		d := a.j.dataOf(lo, hi)
		alone, err = engine.RunGather(ctx, k, u, d, r.Vars, subJobs(d), k.NewScratch())
		return err
	})
	if err == nil && (!bytes.Equal(got, want) || !bytes.Equal(alone, want)) {
		err = fmt.Errorf("unit %d of %d (%s) by itself, or in descending order, is not what it is in ascending order", u.ID,
			r.Tasks, r.Kind)
	}
	return err
}

func samePartial(p, q *round.Partial) bool {
	return bytes.Equal(num.Bytes64(p.F64), num.Bytes64(q.F64)) && bytes.Equal(num.Bytes32(p.F32), num.Bytes32(q.F32)) &&
		slices.Equal(p.I32, q.I32) && slices.Equal(p.Index, q.Index) &&
		bytes.Equal(num.Bytes32(p.Values), num.Bytes32(q.Values))
}

// checkDigest runs the job on one lane, on three lanes, and on three workers which get the
// tasks in blocks that change from round to round, with derived values that they keep or
// not: the model and the counters are the same. So they are where the test rows have other
// features and labels: no round of training may read these.
//
// With the race detector it only runs the job on three lanes: in the others one goroutine computes.
func (j *job) checkDigest(ctx context.Context) error {
	onThreeLanes := func(k round.Kernel) (engine.Executor, error) { return j.local(k, j.data, 3), nil }
	if testkit.Race {
		_, _, err := j.runOn(ctx, onThreeLanes)
		return err
	}
	want, counters, err := j.runOn(ctx, func(k round.Kernel) (engine.Executor, error) {
		return j.local(k, j.data, 1), nil
	})
	if err != nil {
		return err
	}
	executors := map[string]func(round.Kernel) (engine.Executor, error){
		"on three lanes":             onThreeLanes,
		"on three workers in blocks": func(round.Kernel) (engine.Executor, error) { return newCrowd(j, 3) },
		"with other test rows": func(k round.Kernel) (engine.Executor, error) {
			return j.local(k, j.otherTestRows(), 1), nil
		},
	}
	for name, make := range executors {
		got, others, err := j.runOn(ctx, make)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if got != want || !maps.Equal(others, counters) {
			return fmt.Errorf("%s the model has the digest %.12s and the counters %v, on one lane %.12s and %v", name, got,
				others, want, counters)
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
func (j *job) runOn(ctx context.Context, make func(round.Kernel) (engine.Executor, error)) (string,
	map[string]uint64, error) {
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
		c.workers = append(c.workers, &member{kernel: k, data: j.dataOf(0, len(j.shards)),
			cache: engine.NewDerivedCache(limit), scratch: k.NewScratch()})
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
func (w *member) do(ctx context.Context, r *round.Round, res *round.Result, to *engine.Tree,
	mine func(int) bool) (err error) {
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
