package contract

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
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
	err = engine.Drive(ctx, t, 0, executorFunc(func(ctx context.Context, n uint64, r *round.Round, res *round.Result) error {
		if n == maxRounds {
			return errEndless
		}
		if err := x.Do(ctx, n, r, res); err != nil {
			return err
		}
		if n > 30 && n%11 != 0 { // most rounds are like those before
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
	return &apart{j, k, engine.NewDerivedCache(engine.DerivedLimit), k.NewScratch()}, nil
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
		err = fmt.Errorf("unit %d of %d (%s) by itself, or in descending order, is not what it is in ascending order", u.ID, r.Tasks, r.Kind)
	}
	return err
}

func samePartial(p, q *round.Partial) bool {
	return bytes.Equal(num.Bytes64(p.F64), num.Bytes64(q.F64)) && bytes.Equal(num.Bytes32(p.F32), num.Bytes32(q.F32)) &&
		slices.Equal(p.Index, q.Index) && bytes.Equal(num.Bytes32(p.Values), num.Bytes32(q.Values))
}
