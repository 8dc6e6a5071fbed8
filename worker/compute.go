package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

// run is one lane, until the lanes are closed. A lane for collected units, which are long,
// keeps its thread, and by that mostly its processor with the caches. A lane for summed
// rounds does not: the thread that brought its message goes on with it at once, where to
// wake another takes half as long as a short step.
func (x *lane) run() {
	if x.lanes.kind == collectLanes {
		runtime.LockOSThread()
	}
	debug.SetPanicOnFault(true) // a shard's file that is cut short under us: see afterPanic
	w, l := x.w, x.lanes
	for {
		w.mu.Lock()
		t, ok := l.take()
		if ok {
			w.busy++
		}
		w.mu.Unlock()
		if !ok {
			return
		}
		if t.helps != nil {
			x.lend(t.helps)
			continue
		}
		b := t.batch
		took := w.compute(b, t.i, x)
		w.mu.Lock()
		w.busy--
		b.job.used[l.kind] += took
		b.left--
		last := b.left == 0
		b.ending = last
		w.mu.Unlock()
		if last {
			w.end(b)
		}
	}
}

// compute computes one unit and returns how long it took.
func (w *worker) compute(b *batch, i int, x *lane) time.Duration {
	began := time.Now()
	var err error
	if b.run.How == round.Sum {
		err = w.computeSum(b, i, x)
	} else {
		err = w.computeCollected(b, i, x.number)
	}
	took := time.Since(began)
	w.metrics.UnitSeconds.Observe(b.run.Kind, took.Seconds())
	if err != nil {
		err = w.afterPanic(b.job, x.number, err)
		w.fail(b, i, err)
		if errors.Is(err, errFault) {
			w.distrust(b.job)
		}
		return took
	}
	w.metrics.Units.Inc()
	return took
}

// computeSum computes a unit of a summed round into the batch's tree.
func (w *worker) computeSum(b *batch, i int, x *lane) error {
	began := time.Now()
	b.mu.Lock()
	p := b.tree.Partial()
	b.mu.Unlock()
	err := w.runKernel(p, b, i, x)
	if errors.Is(err, engine.ErrNonFinite) {
		err = w.nonFinite(b.job, err)
	}
	if w.cfg.Spoil != nil && err == nil {
		w.cfg.Spoil(b.run.Units[i], p, nil)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.took[i] = time.Since(began)
	if err != nil {
		b.tree.Release(p)
		return err
	}
	_, err = b.tree.Put(0, int(b.run.Units[i]), p)
	return err
}

// nonFinite makes a failure of a partial with a NaN or an infinity: bad memory on this machine, or numbers
// that diverge. The leader tells which by asking another worker. What was derived may
// be at fault and is derived anew when the unit is asked for again.
func (w *worker) nonFinite(j *job, err error) error {
	j.kept.Swap(w.kept.NewCache()).Close()
	return &failure{nonFinite: true, err: err}
}

func (w *worker) runKernel(p *round.Partial, b *batch, i int, x *lane) (err error) {
	j := b.job
	defer engine.Guard(&err, computing)
	u := b.run.Unit(i)
	u.Lanes, x.job = x, j
	defer func() { x.job = nil }() // an idle lane keeps no job in memory
	w.metrics.Rows.Add(float64(len(u.Rows(j.open.Data))))
	return engine.RunFinite(p, j.open.Kernel, u, j.open.Data, b.vars, j.kept.Load(), w.scratch(j, x.number))
}

// scratch returns a lane's working memory for a job; only the lane itself asks.
func (w *worker) scratch(j *job, lane int) any {
	if j.scratch[lane] == nil {
		j.scratch[lane] = j.open.Kernel.NewScratch()
	}
	return j.scratch[lane]
}

// collect computes the bytes of a collected unit.
func (w *worker) collect(ctx context.Context, b *batch, i, lane int) (part []byte, err error) {
	j := b.job
	defer engine.Guard(&err, computing)
	u := b.run.Unit(i)
	if b.run.Child {
		if u.Child, err = pipeline.ChildOf(j.spec, j.manifest, u.ID); err != nil {
			return nil, err
		}
		return engine.RunCollected(ctx, j.open.Kernel, u, j.open.Data, b.vars, w.childRunner(j, b.units[i], u.Payload), nil)
	}
	return engine.RunCollected(ctx, j.open.Kernel, u, j.open.Data, b.vars, nil, w.scratch(j, lane))
}

const computing = "computing the task"

// afterPanic returns the failure of a unit that panicked, and any other error as it is. The
// lane's scratch memory may be in any state after a panic and is dropped. A fault at an
// address is a shard's file that was cut short or cannot be read: another worker may do
// better.
func (w *worker) afterPanic(j *job, lane int, err error) error {
	stack := engine.PanicStack(err)
	if stack == "" {
		return err
	}
	w.log.Error("computing a task panicked", "job", j.id, "reason", err, "stack", stack)
	j.scratch[lane] = nil
	var fault addressed
	if errors.As(err, &fault) {
		return passing(fmt.Errorf("%w: %w", errFault, fault))
	}
	return permanent(err)
}

// addressed is what the runtime panics with after debug.SetPanicOnFault.
type addressed interface {
	runtime.Error
	Addr() uintptr
}

var errFault = errors.New("worker: a shard's file cannot be read")

// distrust drops a job whose shards faulted, and all that is believed of their
// files: they are verified anew, or fetched, when the leader sets the job up
// again.
func (w *worker) distrust(j *job) {
	w.cache.distrust(w.ctx, j.manifest.Shards)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !j.forgotten {
		w.forget(j)
	}
}
