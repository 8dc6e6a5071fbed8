package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/job/local"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/worker/batch"
)

// executors are the goroutines that compute tasks of one kind of round. They wait in take, which returns if there is
// a task, or a part of a task that another executor shares. In this file, p is executors, x is one executor, j is the
// worker's jobs, and owner is the job of a task.
type executors struct {
	kind    batch.Executor
	running sync.WaitGroup

	mu      sync.Mutex
	wake    sync.Cond
	calls   int         // number of executors that should ask for a task, at most count
	count   int         // number of executors
	waiting int         // number of executors that wait in take
	sharing []*executor // executors with parts that other executors may compute
	closed  bool
}

func newExecutors(kind batch.Executor) *executors {
	p := &executors{kind: kind}
	p.wake.L = &p.mu
	return p
}

// begin starts the executors of a kind, as many as there are slots.
func (p *executors) begin(j *jobs) {
	p.count = j.cfg.Slots
	for i := range p.count {
		x := &executor{stepper: stepper{jobs: j}, pool: p, number: int(p.kind)*j.cfg.Slots + i}
		p.running.Go(x.run)
	}
}

// ready says that n more tasks are ready. An executor that computes looks for the next task by
// itself when its task has ended.
func (p *executors) ready(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = min(p.calls+n, p.count)
	p.signal(n)
}

// signal wakes up to n executors. The lock is held.
func (p *executors) signal(n int) {
	for range min(n, p.waiting) {
		p.wake.Signal()
	}
}

// take waits until there is a task, or an executor to help. Tasks come first. helps is the executor to help, which take
// has joined, so that it does not end its task before Leave; nil: the caller asks for a task. ok is false if the
// executors are closed.
func (p *executors) take() (helps *executor, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.closed {
		if p.calls > 0 {
			p.calls--
			return nil, true
		}
		for _, x := range p.sharing {
			if x.share.Open() {
				x.share.Join()
				return x, true
			}
		}
		p.waiting++
		p.wake.Wait()
		p.waiting--
	}
	return nil, false
}

// idle returns the number of executors that wait.
func (p *executors) idle() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting
}

// offer wakes up to n executors to help x. Executors that become idle later also help x, until withdraw is called.
// x.share has begun before offer, because an executor may join at once.
func (p *executors) offer(x *executor, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sharing = append(p.sharing, x)
	p.signal(n)
}

// withdraw ends what offer began. Executors that have joined x.share go on; Share.End waits for them.
func (p *executors) withdraw(x *executor) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := slices.Index(p.sharing, x)
	p.sharing = slices.Delete(p.sharing, at, at+1)
}

// close ends the executors. Each one ends after its task.
func (p *executors) close() {
	p.mu.Lock()
	p.closed = true
	p.wake.Broadcast()
	p.mu.Unlock()
	p.running.Wait()
}

// executor is a goroutine that computes tasks. It implements round.Lanes: while other executors of
// its kind have nothing to do, they compute parts of its task.
type executor struct {
	stepper
	pool   *executors
	number int
	job    *job // of the task
	share  engine.Share
}

// run computes tasks until the executors are closed. An executor of gather rounds keeps its thread,
// and mostly the processor and its caches, because its tasks are long. An executor of reduce rounds
// does not: the thread that received the message goes on with the task, and to wake another thread
// takes half as long as a short task.
func (x *executor) run() {
	if x.pool.kind == batch.Gather {
		runtime.LockOSThread()
	}
	debug.SetPanicOnFault(true) // see addressed
	for {
		other, ok := x.pool.take()
		if !ok {
			return
		}
		if other != nil {
			x.help(other)
			continue
		}
		a, _ := x.step(&batch.Free{Executor: x.pool.kind}).(batch.Compute)
		for a.Assignment != nil {
			a = x.compute(a)
		}
	}
}

// addressed is the panic of the runtime, after debug.SetPanicOnFault, if a mapped file is cut short
// or cannot be read.
type addressed interface {
	runtime.Error
	Addr() uintptr
}

var errFault = errors.New("worker: a shard's file cannot be read")

// compute computes a task and reports how it ended. It returns the next one, without an assignment if there is none.
func (x *executor) compute(a batch.Compute) (next batch.Compute) {
	j, w := x.jobs, a.Batch.Local.(*work)
	owner := w.job // read here: after batch.Ended, w may serve another batch
	j.busy.Add(1)
	began := time.Now()
	var took time.Duration
	var err error
	if a.Task == nil {
		took, err = x.reduce(w, a.Index, began)
	} else {
		err = x.gather(w, a)
		took = time.Since(began)
	}
	j.metrics.TaskSeconds.Observe(w.run.Kind, took.Seconds())
	if err == nil {
		j.metrics.Tasks.Inc()
	} else if stack := engine.PanicStack(err); stack != "" {
		j.log.Error("computing a task panicked", "job", owner.ID, "reason", err, "stack", stack)
		owner.scratch[x.number] = nil // it may be in any state
		if fault := addressed(nil); errors.As(err, &fault) {
			err = batch.Passing(fmt.Errorf("%w: %w", errFault, fault)) // another worker may have a better file
		} else {
			err = batch.Permanent(err)
		}
	}
	j.busy.Add(-1)
	next, _ = x.step(&batch.Ended{Assignment: a.Assignment, Took: took, Err: err}).(batch.Compute)
	if errors.Is(err, errFault) { // the files are verified, or fetched, when the leader sets the job up again
		j.cache.reverify(j.ctx, owner.manifest.Shards)
		j.step(&batch.Damaged{Job: owner.Job})
	}
	return next
}

// reduce computes a task of a reduce round into the tree of its batch, and returns how long that took.
func (x *executor) reduce(w *work, index int, began time.Time) (took time.Duration, err error) {
	w.mu.Lock()
	p := w.tree.Partial()
	w.mu.Unlock()
	err = x.runKernel(p, w, index)
	if errors.Is(err, engine.ErrNonFinite) {
		// The memory of this machine may be bad, or the numbers diverge. The leader asks another
		// worker to find out. Derived values may be the cause, and are made again.
		w.job.kept.Swap(x.jobs.kept.NewCache()).Close()
		err = &batch.Failure{NonFinite: true, Err: err}
	}
	unit := w.run.Tasks[index]
	if spoil := x.jobs.cfg.Spoil; spoil != nil && err == nil {
		spoil(unit, p, nil)
	}
	took = time.Since(began)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.took[index] = took
	if err != nil {
		w.tree.Release(p)
		return took, err
	}
	_, err = w.tree.Put(0, int(unit), p)
	return took, err
}

const computing = "computing the task"

// runKernel computes a task of a reduce round into p.
func (x *executor) runKernel(p *round.Partial, w *work, index int) (err error) {
	owner := w.job
	defer engine.Guard(&err, computing)
	u := w.run.Task(index)
	u.Lanes, x.job = x, owner
	defer func() { x.job = nil }() // an idle executor keeps no job in memory
	x.jobs.metrics.Rows.Add(float64(len(u.Rows(owner.open.Data))))
	return engine.RunFinite(p, owner.open.Kernel, u, owner.open.Data, w.vars, owner.kept.Load(), x.scratch(owner))
}

// gather computes a task of a gather round, and hands its result to a storer, so that no executor
// waits for a disk.
func (x *executor) gather(w *work, a batch.Compute) error {
	j, g := x.jobs, a.Task.Local.(*gathered)
	j.procs.begin()
	defer j.procs.end()
	began := time.Now()
	part, err := x.result(g.ctx, w, a)
	if err != nil {
		return err
	}
	if spoil := j.cfg.Spoil; spoil != nil {
		spoil(a.Task.Number, nil, part)
	}
	j.computed <- computed{job: w.job, task: a.Task, part: part, took: time.Since(began)}
	return nil
}

// result computes the result of a task of a gather round. A sub-job runs on the shards of its job,
// from the checkpoint in the payload if there is one.
func (x *executor) result(ctx context.Context, w *work, a batch.Compute) (part []byte, err error) {
	owner := w.job
	defer engine.Guard(&err, computing)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	u := w.run.Task(a.Index)
	if !w.run.SubJob {
		return engine.RunGather(ctx, owner.open.Kernel, u, owner.open.Data, w.vars, nil, x.scratch(owner))
	}
	if u.SubJob, err = pipeline.SubJobOf(owner.spec, owner.manifest, u.ID); err != nil {
		return nil, err
	}
	return engine.RunGather(ctx, owner.open.Kernel, u, owner.open.Data, w.vars,
		func(ctx context.Context, child *round.Job) ([]byte, error) {
			options := x.reporting(a.Task)
			if len(u.Payload) > 0 {
				var resume protocol.Resume
				if err := protocol.Read(&resume, u.Payload); err != nil {
					return nil, fmt.Errorf("worker: the saved state of the fold cannot be read: %w", err)
				}
				options.Resume = local.Checkpoint(resume)
				x.jobs.log.Info("a fold continues on this worker", "job", owner.ID, "unit", u.ID, "round", resume.Rounds)
			}
			return local.SubJob(ctx, owner.open, child, options)
		}, nil)
}

// reporting returns options with which a sub-job tells the leader its progress and its checkpoints.
func (x *executor) reporting(t *batch.Task) local.Options {
	j := x.jobs
	report := func(rounds uint64, p round.Progress) {
		if p.Loss-p.Loss != 0 { // not a finite number
			p.Loss = -1
		}
		to := j.request(t)
		m := t.Local.(*gathered).progress.tell(protocol.Progress{
			Stamp: to.Stamp, Worker: j.id, Task: t.Number, Done: protocol.Work{Rounds: rounds, Steps: p.Step,
				Samples: p.Samples},
			Steps: p.Steps, Most: p.MostSteps, Loss: p.Loss,
		})
		j.link.send(to.Reply, m.Append(nil))
	}
	checkpoint := func(at local.Checkpoint) {
		to := j.request(t)
		m := protocol.Checkpoint{Stamp: to.Stamp, Worker: j.id, Task: t.Number, Resume: protocol.Resume(at)}
		j.link.send(to.Reply, m.Append(nil))
	}
	return local.Options{Kept: j.kept, Report: report, Checkpoint: checkpoint, CheckpointEvery: j.cfg.CheckpointEvery}
}

// scratch returns the executor's working memory for a job.
func (x *executor) scratch(owner *job) any {
	if owner.scratch[x.number] == nil {
		owner.scratch[x.number] = owner.open.Kernel.NewScratch()
	}
	return owner.scratch[x.number]
}

// Idle implements round.Lanes.
func (x *executor) Idle() int { return x.pool.idle() }

// Do implements round.Lanes. Begin comes before offer, since an executor may join at once. withdraw comes before End,
// since no executor may join while End waits for the executors that have joined.
func (x *executor) Do(n int, p round.Parts) {
	x.share.Begin(n, p)
	x.pool.offer(x, n-1)
	defer func() { // also if a part panics
		x.pool.withdraw(x)
		x.share.End()
	}()
	x.share.Work(x.scratch(x.job))
}

// help computes parts of the task of another executor, which take has joined. If a part panics, its task fails. Leave
// comes last: until then, other waits in Share.End, and its job stays open.
func (x *executor) help(other *executor) {
	j := x.jobs
	j.busy.Add(1)
	began, owner := time.Now(), other.job
	if stack := other.share.Help(x.scratch(owner)); stack != nil {
		j.log.Error("a part of a task panicked", "job", owner.ID, "stack", string(stack))
		owner.scratch[x.number] = nil // it may be in any state
	}
	j.busy.Add(-1)
	x.step(&batch.Helped{Job: owner.Job, Executor: x.pool.kind, Took: time.Since(began)})
	other.share.Leave()
}
