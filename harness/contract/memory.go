package contract

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit"
)

// checkMemory runs the job and holds its estimate of memory against the greatest state, the
// greatest node of a reduction and the model: the estimate is not below any of them.
func (j *job) checkMemory(ctx context.Context) error {
	t, f, err := j.measured(ctx, maxRounds)
	if err != nil {
		return err
	}
	m, err := t.Model()
	if err != nil {
		return err
	}
	j.model = &m
	if model := tensorBytes(m); model > f.Model {
		return fmt.Errorf("the estimate is %+v; the model has %d bytes", *f, model)
	}
	return nil
}

// errEnough ends a job that is not run to its end.
var errEnough = errors.New("enough rounds")

// measured runs at most so many rounds and holds the estimate against the states and the
// nodes.
func (j *job) measured(ctx context.Context, rounds uint64) (algorithms.Trainer, *algorithms.Footprint, error) {
	f, err := j.a.Footprint(j.spec, j.manifest)
	if err != nil {
		return nil, nil, err
	}
	_, x, err := j.start()
	if err != nil {
		return nil, nil, err
	}
	var state, node int64
	t, err := j.train(ctx, executorFunc(func(ctx context.Context, n uint64, r *round.Round, res *round.Result) error {
		if n == rounds {
			return errEnough
		}
		if how := r.Reduce(); how != nil {
			s := how.Shape
			node = max(node, int64(8*s.F64+4*s.F32+4*s.I32+4*s.Rows*(1+s.Width)))
		}
		return x.Do(ctx, n, r, res)
	}), func(_ uint64, t round.Trainer) error {
		b, err := t.AppendState(nil)
		state = max(state, int64(len(b)))
		if err == nil && rounds < maxRounds && t.Progress().Samples >= endSamples {
			err = errEnough
		}
		return err
	})
	if err == nil || errors.Is(err, errEnough) {
		if err = nil; state > f.State || node > f.Node || node > 0 && f.Nodes < 1 {
			err = fmt.Errorf("the estimate is %+v; the state has %d bytes, a node %d", f, state, node)
		}
	}
	return t, &f, err
}

// tensorBytes is the memory of a model's numbers.
func tensorBytes(m algorithms.Model) (n int64) {
	for _, t := range m.Tensors() {
		for _, p := range append(t.Pieces, t) {
			n += int64(4*len(p.F32) + 8*len(p.F64) + 4*len(p.U32))
		}
	}
	return n
}

// checkAllocations: scratch memory is there so that the computation of a summed task that
// was computed before, and a prediction after another one, allocate nothing.
func (j *job) checkAllocations(ctx context.Context) error {
	k, err := j.kernel()
	if err != nil {
		return err
	}
	t, err := j.train(ctx, &counting{Local: j.local(k, j.data, 1), j: j, kernel: k, scratch: k.NewScratch(),
		cache: engine.NewDerivedCache(engine.DerivedLimit)}, ignore)
	if err != nil {
		return err
	}
	m, err := t.Model()
	if err != nil {
		return err
	}
	refs, scratch := j.refs(), m.NewScratch()
	dst := make([]float32, len(refs)*j.width())
	shard := j.shard
	if n := allocations(func() { m.Predict(dst, refs, shard, scratch) }); n > 0 {
		return fmt.Errorf("a prediction of %d rows allocates %d times", len(refs), n)
	}
	return nil
}

// counting is an executor that counts the allocations of tasks.
type counting struct {
	*engine.Local
	j       *job
	kernel  round.Kernel
	scratch any
	cache   *engine.DerivedCache
}

// Do implements engine.Executor.
func (x *counting) Do(ctx context.Context, n uint64, r *round.Round, res *round.Result) error {
	how := r.Reduce()
	if k, ok := x.kernel.(round.ReduceKernel); ok && how != nil && (n < 20 || n%13 == 0) {
		var p round.Partial
		for _, id := range slices.Compact([]int{0, r.Tasks - 1}) {
			u := r.Task(id)
			p.Reset(how.Shape)
			p.Index, p.Values = slices.Grow(p.Index, how.Shape.Rows), slices.Grow(p.Values, how.Shape.Rows*how.Shape.Width)
			value, err := x.derive(k, u, r)
			if err != nil {
				return err
			}
			var failed error
			if n := allocations(func() {
				p.Reset(how.Shape)
				if err := k.Run(&p, u, x.j.data, r.Vars, value, x.scratch); err != nil {
					failed = err
				}
			}); n > 0 && failed == nil {
				failed = fmt.Errorf("unit %d (%s) allocates %d times", id, r.Kind, n)
			}
			if failed != nil {
				return failed
			}
		}
	}
	return x.Local.Do(ctx, n, r, res)
}

func (x *counting) derive(k round.ReduceKernel, u round.Task, r *round.Round) (round.Derived, error) {
	if u.DerivedVersion == 0 {
		return nil, nil
	}
	return k.Derive(u, x.j.data, r.Vars, x.scratch)
}

// allocations returns how often f allocates once it ran before: the least of some counts,
// since the rest of the process allocates meanwhile. With the race detector it is 0: a sync.Pool
// forgets at random then.
func allocations(f func()) uint64 {
	f()
	if testkit.Race {
		return 0
	}
	least := ^uint64(0)
	var before, after runtime.MemStats
	for range 5 {
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		if least = min(least, after.Mallocs-before.Mallocs); least == 0 {
			break
		}
	}
	return least
}

// The bounds of a job with a number at its end: what is larger is not run, or not made.
const (
	endRounds  = 30
	endSamples = 1 << 20 // rows processed; the largest batch has as many
	largeState = 256 << 20
	largeRun   = 4 << 20
)

// checkEnd holds a job with a setting at its end against checkStates and checkMemory for some rounds. Where
// the end does not go with the dataset or the other settings, the error says which setting
// is wrong; a job too large for a test is begun only.
func checkEnd(ctx context.Context, a algorithms.Algorithm, p *problem, v param.Values) error {
	j, err := newJob(a, p, v)
	if err != nil {
		return paramError(err)
	}
	f, err := a.Footprint(j.spec, p.manifest)
	if err != nil {
		return err
	}
	if f.State > largeState || f.Working > largeState || f.Node > largeState {
		return nil
	}
	if f.State+f.Working+f.Node*f.Nodes > largeRun {
		if _, err := j.trainer(nil); err != nil {
			return err
		}
		_, err := j.kernel()
		return err
	}
	if err := j.compareRestored(ctx, endRounds, false); err != nil {
		return err
	}
	_, _, err = j.measured(ctx, endRounds)
	return err
}

// paramError returns err unless it says which setting is wrong.
func paramError(err error) error {
	if wrong, ok := errors.AsType[*param.Error](err); ok && wrong.Name != "" && wrong.Reason != "" {
		return nil
	}
	return err
}
