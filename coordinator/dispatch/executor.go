package dispatch

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/engine/schedule"
	"github.com/coppice-ldl/coppice/metrics"
	"github.com/coppice-ldl/coppice/protocol"
)

// ExecutorOptions says how a job's tasks are scheduled.
type ExecutorOptions struct {
	// AuditPPM is the fraction of tasks, in millionths, that two workers compute. Their results are compared before one is
	// used.
	AuditPPM uint32
	// Progress, if its Reporter is set, is told how far gather rounds are.
	Progress ProgressOptions
	// Budget, if set, bounds the computing time of tasks of gather rounds.
	Budget *BudgetOptions
	// Fault, if set, is told of faults by the goroutine that uses the executor.
	Fault func(Fault)
}

// Fault is something that went wrong with the tasks of a job, or with a worker that was sent the job.
type Fault struct {
	Cause  Cause
	Worker string // empty: it is no worker's fault
	Reason string // in words; empty: the cause says all
	Tasks  int    // that were given out again
}

// Cause says what went wrong.
type Cause uint8

// The causes. The dispatcher does not tell JobStopped.
const (
	Unusable   Cause = iota // the worker cannot be used any longer; quarantine is told otherwise
	TooSlow                 // the worker took too long
	LacksJob                // the worker did not have the job any longer, as after a restart
	TaskFailed              // tasks failed on the worker or the leader, for a reason that may pass
	ResultLost              // results of tasks could not be stored
	NotFinite               // results of the worker were not finite
	JobStopped              // the job stopped, for a reason that may pass, and starts again
)

// BudgetOptions is the part of a job in the budgets of its submission.
type BudgetOptions struct {
	Key   string // names the submission
	Share schedule.ShareOptions
	// Elsewhere returns the seconds, by budget, that jobs of the submission have spent for which open is false.
	Elsewhere func(open func(job uint64) bool) map[string]float64
}

// Executor has one job's rounds computed by workers. It implements engine.Executor and is used by one goroutine.
type Executor struct {
	d        *Dispatcher
	id       uint64
	start    uint64 // see protocol.Setup
	job      *round.Job
	manifest *dataset.Manifest
	options  ExecutorOptions

	schedule *schedule.Job // d.mu guards it; its state changes in decide only, so this goroutine may read it without
	mail     *mailbox
	outbox   outbox
	progress *progress
	results  results
	shown    atomic.Pointer[shown] // for people

	// The round.
	number   uint64
	r        *round.Round
	ticker   *time.Ticker
	sum      sum
	verified verification
	complete bool
	restart  bool

	mem stepMemory
}

// stepMemory is the memory of one step.
type stepMemory struct {
	now     time.Time // of the last decision
	actions []schedule.Action
	msgs    [][]byte
	ends    []end
	in      incoming
}

// sum has the numbers of reduce rounds.
type sum struct {
	tree engine.Tree
	kept map[result]*round.Partial // of tasks whose results are compared
	room *protocol.Room
	// longest is the size of the longest message of the round, in bytes.
	longest int
	ended   time.Time // of the last round, if that was a reduce round; otherwise zero
}

// result names one of the results of a task that are compared.
type result struct {
	task   int
	worker string
}

// Executor returns the executor of a job. Close it when the job ends or stops.
func (d *Dispatcher) Executor(id uint64, job *round.Job, m *dataset.Manifest, o ExecutorOptions) *Executor {
	x := &Executor{d: d, id: id, job: job, manifest: m, options: o, mail: newMailbox(d.cfg.Conn.Room()),
		ticker: time.NewTicker(d.lookAt)}
	x.sum.kept, x.sum.room = make(map[result]*round.Partial), d.cfg.Conn.Room()
	x.sum.tree.Free = x.sum.room.Reuse
	if o.Progress.Reporter != nil {
		x.progress = &progress{ProgressOptions: o.Progress}
	}
	x.outbox.peers = make(map[string]*address)
	x.results.x, x.results.began = x, time.Now()
	x.results.background, x.results.cancel = context.WithCancel(context.Background())
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.jobs[id] != nil {
		panic(fmt.Sprintf("dispatch: job %d has an executor already", id))
	}
	d.starts++
	x.start = d.starts
	d.jobs[id] = x
	options := schedule.Options{Verifies: d.cfg.Verifier != nil}
	if b := o.Budget; b != nil {
		if d.budgets[b.Key] == nil {
			d.budgets[b.Key] = new(schedule.Budgets)
		}
		options.Budget = d.budgets[b.Key].Open(b.Share)
		d.spend(b)
	}
	x.schedule = d.workers.NewJob(id, m.Shards, options)
	return x
}

// spend counts anew what jobs have spent of their budgets; d.mu is held.
func (d *Dispatcher) spend(b *BudgetOptions) {
	of := d.budgets[b.Key]
	if of.Empty() {
		delete(d.budgets, b.Key)
		return
	}
	of.Spend(b.Elsewhere(func(job uint64) bool {
		x := d.jobs[job]
		return x != nil && x.options.Budget != nil && x.options.Budget.Key == b.Key
	}))
}

// Close ends the job on the workers: they stop its tasks and drop what they keep. Short results that are not recorded
// yet are lost with it.
func (x *Executor) Close() {
	x.results.close()
	x.ticker.Stop()
	d := x.d
	d.mu.Lock()
	delete(d.jobs, x.id)
	x.mem.actions = x.schedule.Close(x.mem.actions[:0], time.Now())
	if x.options.Budget != nil {
		d.spend(x.options.Budget)
	}
	d.mu.Unlock()
	x.mail.close()
	if x.sum.longest >= lentFrom {
		x.sum.room.Release()
	}
	_ = x.perform(context.Background()) // forgets and wakes: neither fails
}

// Computed returns how long the slowest partial of the last reduce round was computed, as workers say.
func (x *Executor) Computed() time.Duration { return x.schedule.Computed() }

// Gathered reports whether the last round was a gather round and its progress became known: its steps are counted then.
func (x *Executor) Gathered() bool {
	return x.progress != nil && x.r != nil && x.r.Gather() != nil
}

// Do implements engine.Executor.
func (x *Executor) Do(ctx context.Context, n uint64, r *round.Round, res *round.Result) (err error) {
	began := time.Now()
	x.number, x.r = n, r
	*res = round.Result{}
	if r.Gather() != nil {
		x.sum.ended = time.Time{}
		defer x.results.begin(ctx)()
		x.progress.begin(r)
		defer x.progress.end()
	} else {
		x.mem.in.part.Partial = nil // of the round before: it may be all that holds a large message
		if !x.sum.ended.IsZero() {
			x.d.cfg.Metrics.Between.Observe(began.Sub(x.sum.ended).Seconds())
		}
		defer func() { x.sum.ended = x.mem.now }()
	}
	defer x.end()
	if err := x.begin(ctx); err != nil {
		return err
	}
	if r.Reduce() != nil {
		x.d.cfg.Metrics.Broadcast.Observe(time.Since(began).Seconds())
	}
	for !x.complete && err == nil {
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case <-x.mail.ready:
			err = x.receive(ctx)
		case now := <-x.ticker.C:
			err = x.step(ctx, &schedule.Tick{})
			x.progress.show(now)
		}
		if x.restart && err == nil {
			err = x.begin(ctx)
		}
	}
	if err != nil {
		return err
	}
	if r.Reduce() != nil {
		res.Sum = x.sum.tree.Root()
		return nil
	}
	return x.results.load(ctx, res)
}

// begin begins the round, or begins a reduce round again.
func (x *Executor) begin(ctx context.Context) error {
	x.complete, x.restart = false, false
	x.verified.end()
	x.sum.releaseKept(allTasks)
	var known []schedule.Known
	if x.r.Gather() != nil {
		known = x.d.cfg.Results.Known(x.id, x.number)
		for i := range known {
			if k := &known[i]; int(k.Task) < len(x.results.digests) {
				x.results.digests[k.Task] = k.Digest
			}
		}
	} else {
		x.sum.tree.Reset(x.r.Tasks, x.r.Reduce().Shape)
		x.sum.releaseLong(x.r)
	}
	audit := sample(x.r.Tasks, x.options.AuditPPM)
	x.decide(func(dst []schedule.Action, now time.Time) []schedule.Action {
		return x.schedule.Begin(dst, now, x.number, x.r, known, audit)
	})
	err := x.perform(ctx)
	if x.r.Gather() != nil {
		x.results.readKnown()
	}
	return err
}

// end ends the round: slots are free, and nobody computes on the leader.
func (x *Executor) end() {
	x.verified.end()
	x.sum.releaseKept(allTasks)
	x.decide(x.schedule.End)
	_ = x.perform(context.Background()) // wakes others: that does not fail
}

// allTasks is the argument of releaseKept for the partials of all tasks.
const allTasks = -1

// releaseKept drops the partials of a task that are kept.
func (s *sum) releaseKept(task int) {
	for at, p := range s.kept {
		if task == allTasks || at.task == task {
			s.tree.Release(p)
			delete(s.kept, at)
		}
	}
}

// useKept puts a kept partial into the tree, and drops the others of its task.
func (s *sum) useKept(at result) error {
	p := s.kept[at]
	delete(s.kept, at)
	s.releaseKept(at.task)
	_, err := s.tree.Put(0, at.task, p)
	return err
}

// step applies an event and performs the actions that follow. A partial that the event brought and no action took is
// released.
func (x *Executor) step(ctx context.Context, e schedule.Event) error {
	x.decide(func(dst []schedule.Action, now time.Time) []schedule.Action { return x.schedule.Step(dst, now, e) })
	err := x.perform(ctx)
	if p := x.mem.in.takePartial(); p != nil {
		x.sum.tree.Release(p)
	}
	return err
}

// decide has the scheduler decide what to do next. If the scheduler panics, that ends one job: the lock is free.
func (x *Executor) decide(next func(dst []schedule.Action, now time.Time) []schedule.Action) {
	x.d.mu.Lock()
	defer x.d.mu.Unlock()
	x.mem.now = time.Now()
	x.mem.actions = next(x.mem.actions[:0], x.mem.now)
}

// perform performs the actions of a step, in order. An error ends the round.
func (x *Executor) perform(ctx context.Context) error {
	m := x.d.cfg.Metrics
	for _, a := range x.mem.actions {
		switch a := a.(type) {
		case *schedule.SendSetup:
			x.sendSetup(a.Worker)
		case *schedule.SendValue:
			x.sendValue(a.Worker, &x.r.Vars[a.Var])
		case *schedule.SendChunks:
			x.sendChunks(a)
		case *schedule.SendRun:
			x.sendRun(a.Worker, a.Tasks)
		case *schedule.SendStop:
			x.sendForget(a.Worker, x.number, uint32(a.Task))
		case *schedule.SendForget:
			x.sendForget(a.Worker, 0)
		case *schedule.SendHold:
			at := x.d.addressOf(a.Worker)
			x.d.send(&at, (&protocol.Hold{Epoch: x.d.cfg.Epoch, Shards: a.Shards}).Append(nil))
		case *schedule.UsePartial:
			p := x.mem.in.takePartial()
			if _, err := x.sum.tree.Put(int(x.mem.in.part.Level), int(x.mem.in.part.Index), p); err != nil {
				return err
			}
			m.Reduce.Observe(time.Since(x.mem.now).Seconds())
		case *schedule.KeepPartial:
			x.sum.kept[result{a.Task, a.Worker}] = x.mem.in.takePartial()
		case *schedule.UseKept:
			if err := x.sum.useKept(result{a.Task, a.Worker}); err != nil {
				return err
			}
		case *schedule.UseCheckpoint:
			x.outbox.keepCheckpoint(uint32(a.Task), a.Worker, &x.mem.in.checkpoint)
		case *schedule.UseProgress:
			x.progress.report(&x.mem.in.progress)
		case *schedule.Drop:
			m.ResultsDropped.WithLabelValues(dropLabels[a.Reason]).Inc()
		case *schedule.Store:
			x.results.store(a)
		case *schedule.Record:
			x.results.record(a)
		case *schedule.RecordSkips:
			x.results.skip(slices.Clone(a.Tasks), a.Took)
		case *schedule.Compute:
			x.verify(ctx, a.Task)
		case *schedule.Quarantine:
			if err := x.d.quarantined(ctx, a.Worker, a.Jobs, a.Reason); err != nil {
				return err
			}
		case *schedule.Restart:
			x.restart = true
		case *schedule.WakeOthers:
			x.d.wake(func(other *Executor) bool { return other != x })
		case *schedule.WakeJob:
			x.d.wake(func(other *Executor) bool { return other.id == a.Job })
		case *schedule.Ended:
			x.results.end(a)
		case *schedule.EndedBefore:
			for _, t := range a.Tasks {
				x.progress.have(int(t), nil, 0, true)
			}
		case *schedule.NotRun:
			for _, t := range a.Tasks {
				delete(x.outbox.checkpoints, t)
				x.progress.notRun(int(t))
			}
		case *schedule.Retried, *schedule.RetriedLost, *schedule.RetriedNotFinite:
			x.retried(a)
		case *schedule.WorkerTrouble:
			x.fault(Fault{Cause: causes[a.Trouble], Worker: a.Worker, Reason: a.Reason, Tasks: a.Tasks})
		case *schedule.Computed:
			x.d.computed(a, x.r.Kind, x.mem.now)
		case *schedule.Count:
			[...]interface{ Add(float64) }{m.TasksRetried, m.TasksWasted, m.Audits,
				m.AuditDifferences}[a.Metric].Add(float64(a.N))
		case *schedule.Finish:
			x.complete = true
		case *schedule.Fail:
			return a.Err
		}
	}
	return nil
}

// dropLabels are the values of a label of coppice_results_dropped_total.
var dropLabels = map[schedule.DropReason]string{
	schedule.Stale: metrics.DropStale, schedule.Malformed: metrics.DropMisshapen,
	schedule.Duplicate: metrics.DropDuplicate,
}

// causes are the causes of troubles with workers.
var causes = map[schedule.Trouble]Cause{
	schedule.Unusable: Unusable, schedule.TooSlow: TooSlow, schedule.LacksJob: LacksJob,
}

// fault tells of a fault.
func (x *Executor) fault(f Fault) {
	if x.options.Fault != nil {
		x.options.Fault(f)
	}
}

// retried tells that a task runs again.
func (x *Executor) retried(a schedule.Action) {
	log := x.d.cfg.Log.With("job", x.id, "round", x.number)
	switch a := a.(type) {
	case *schedule.RetriedNotFinite:
		x.fault(Fault{Cause: NotFinite, Worker: a.Worker, Reason: a.Reason, Tasks: 1})
		log.Warn("a partial result is not finite; the task is computed again", "unit", a.Task, "worker", a.Worker,
			"reason", a.Reason)
	case *schedule.RetriedLost:
		x.fault(Fault{Cause: ResultLost, Reason: a.Err.Error(), Tasks: 1})
		log.Warn("the result of a task could not be stored; the task is computed again", "unit", a.Task, "error", a.Err)
		x.d.Stopped(x.id, fmt.Errorf("the result of task %d could not be stored: %w", a.Task, a.Err), time.Now())
	case *schedule.Retried:
		if a.Worker == schedule.Verifier {
			x.fault(Fault{Cause: TaskFailed, Reason: a.Err.Error(), Tasks: 1})
			log.Warn("the leader could not compute a task to verify workers", "unit", a.Task, "error", a.Err)
		} else {
			x.fault(Fault{Cause: TaskFailed, Worker: a.Worker, Reason: a.Reason, Tasks: 1})
			log.Warn("a task failed and is tried again", "unit", a.Task, "worker", a.Worker, "pause", a.Pause,
				"reason", a.Reason)
		}
		if a.Pause > 0 { // each worker has tried it
			x.d.Stopped(x.id, a.Err, time.Now())
		}
	}
}

// lentFrom is the size of a message from which on its numbers stay in its memory: there is no second copy of the
// gradient of a large network. The message's memory serves the next one.
const lentFrom = 1 << 20

// returnedFrom is the size of messages from which on their memory goes back to the system at once.
const returnedFrom = 16 << 20

// releaseLong drops the memory of long messages when the rounds that have them are over: the model needs it.
func (s *sum) releaseLong(r *round.Round) {
	was := s.longest
	shape := r.Reduce().Shape
	s.longest = 8*shape.F64 + 4*shape.F32 + 4*shape.I32
	for i := range r.Vars {
		s.longest = max(s.longest, len(r.Vars[i].Data))
	}
	if was < lentFrom || s.longest >= lentFrom {
		return
	}
	s.room.Release()
	if was >= returnedFrom {
		debug.FreeOSMemory()
	}
}
