package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/job/open"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/worker/batch"
)

const (
	// fetchAtOnce is how many shards of a job are fetched at the same time.
	fetchAtOnce = 4
	// maxRows bounds the samples of a dataset. A worker keeps some bytes for each of them, even if
	// it has no shard.
	maxRows = 1 << 28
	// storers is how many results are stored at the same time.
	storers = 2
	// maxComputed is how many results may wait for storers, before executors wait.
	maxComputed = 4
	// longPart is the number of bytes from which a partial is sent without being copied.
	longPart = 1 << 20
)

// job is what computes a job's tasks. All of it can be fetched again.
type job struct {
	*batch.Job
	spec     *round.Job
	manifest *dataset.Manifest
	ctx      context.Context // ends when the job is forgotten
	cancel   context.CancelFunc
	open     *open.Job                           // set before Opened; nil if the job cannot be opened
	kept     atomic.Pointer[engine.DerivedCache] // derived values; may be replaced
	scratch  []any                               // by executor, which is the only one to use it

	shards  []*shard     // added to open; jobs.mu guards it
	fetches backlog[int] // shards to fetch
}

// work is the memory of a batch, also after it has retired.
type work struct {
	job  *job
	run  *protocol.Run // of the batch
	vars round.Vars

	mu   sync.Mutex // guards what follows between executors
	tree engine.Tree
	took []time.Duration  // by index in the message
	part protocol.Partial // scratch of answer
}

// beginBatch prepares the memory of a batch.
func beginBatch(b *batch.Batch) {
	w, ok := b.Local.(*work)
	if !ok {
		w = &work{job: b.Job.Local.(*job), run: &b.Run}
		b.Local = w
	}
	w.vars = w.vars[:0]
	for _, v := range b.Values {
		x := v.Local.(*value)
		w.vars = append(w.vars, round.Var{ID: v.ID, Version: v.Number, Data: x.data, Chunks: x.list})
	}
	if !w.run.Gather {
		w.took = slices.Grow(w.took[:0], len(w.run.Tasks))[:len(w.run.Tasks)]
		clear(w.took)
		w.tree.Reset(int(w.run.Of), w.run.Shape)
	}
}

// gathered is a task of a gather round that an executor has begun.
type gathered struct {
	ctx      context.Context // ends when nobody wants the task
	cancel   context.CancelFunc
	progress progress
}

// progress is what leaders were told of a sub-job.
type progress struct {
	mu     sync.Mutex
	last   protocol.Progress // Worker is empty if nothing was told
	before protocol.Work     // what earlier leaders were told, so that it is not counted twice
}

// tell returns a message about a sub-job, with what earlier leaders were told.
func (p *progress) tell(m protocol.Progress) protocol.Progress {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last.Worker != "" && p.last.Epoch != m.Epoch {
		p.before = p.last.Done
	}
	m.Counted = p.before
	p.last = m
	return m
}

// again returns the latest message, for the leader of a stamp. ok is false if there is none.
func (p *progress) again(s protocol.Stamp) (m protocol.Progress, ok bool) {
	p.mu.Lock()
	m = p.last
	p.mu.Unlock()
	if m.Worker == "" {
		return m, false
	}
	m.Stamp = s
	return p.tell(m), true
}

// jobs computes what the leader asks for. Package batch decides, and jobs performs its actions.
// Quick actions are performed with the lock held. The goroutine that reported the event performs
// the others, which send (see stepper).
type jobs struct {
	*env
	cache   *cache
	results *results
	kept    *engine.DerivedMemory // derived values of all jobs
	procs   *processors
	report  func()                    // asks for a full heartbeat
	wake    func(batch.Executor, int) // says that tasks are ready

	ctx        context.Context // parent of the contexts of jobs
	busy       atomic.Int64    // executors that compute
	background sync.WaitGroup  // goroutines that open jobs and fetch shards
	computed   chan computed   // results of gather rounds, from executors to storers
	storing    sync.WaitGroup  // storers

	mu      sync.Mutex // guards what follows, and each field Local of the machine
	machine *batch.Machine
}

// epoch returns the highest leader epoch seen.
func (j *jobs) epoch() uint64 {
	epoch, _ := j.counts()
	return epoch
}

// counts returns the highest leader epoch seen, and the number of jobs.
func (j *jobs) counts() (epoch uint64, jobs int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.machine.Epoch(), len(j.machine.Jobs())
}

// step reports an event and does what follows from it.
func (j *jobs) step(e batch.Event) { (&stepper{jobs: j}).step(e) }

// hear reports a leader epoch, and returns whether messages of it count.
func (j *jobs) hear(epoch uint64) bool {
	j.step(&batch.Heard{Epoch: epoch})
	return epoch == j.epoch()
}

// reset forgets all jobs, and goes on from a leader epoch.
func (j *jobs) reset(epoch uint64) {
	j.step(&batch.Reset{Epoch: epoch})
}

// apply applies an event, appends the actions that follow from it to list, and performs those
// actions that are quick.
func (j *jobs) apply(list []batch.Action, e batch.Event) []batch.Action {
	j.mu.Lock()
	defer j.mu.Unlock()
	done := len(list)
	list = j.machine.Step(list, e)
	for _, a := range list[done:] {
		switch a := a.(type) {
		case batch.Open:
			x := j.newJob(a)
			j.background.Go(func() { j.open(x) })
		case batch.Fetch:
			a.Job.Local.(*job).fetches.add(a.Index)
		case batch.Cancel:
			a.Job.Local.(*job).cancel()
		case batch.Close:
			x := a.Job.Local.(*job)
			for _, s := range x.shards {
				j.cache.release(s)
			}
			x.kept.Load().Close()
		case batch.Keep:
			keepValue(a.Version)
		case batch.KeepChunk:
			keepChunk(a.Version, a.Index, a.Local.(*chunk))
		case batch.Release:
			if x, ok := a.Version.Local.(*value); ok { // otherwise no chunk was here
				x.release(j.link.reuse)
			}
		case batch.Begin:
			beginBatch(a.Batch)
			if !a.Batch.Run.Gather {
				j.procs.step()
			}
		case batch.Wake:
			j.wake(a.Batch.Executor, a.Batch.Tasks())
		case batch.Retire:
			clear(a.Batch.Local.(*work).vars) // its memory is kept
			clear(a.Batch.Run.Payload)
		case batch.Compute:
			if a.Task != nil {
				g := new(gathered)
				g.ctx, g.cancel = context.WithCancel(a.Batch.Job.Local.(*job).ctx)
				a.Task.Local = g
			}
		case batch.Stop:
			if g, ok := a.Task.Local.(*gathered); ok { // otherwise it has not begun
				g.cancel()
			}
		case batch.DropResult:
			j.results.release(a.Digest)
		}
	}
	return list
}

// newJob makes the job of an Open action.
func (j *jobs) newJob(a batch.Open) *job {
	x := &job{
		Job: a.Job, spec: a.Setup.Job, manifest: a.Setup.Manifest,
		scratch: make([]any, int(batch.Executors)*j.cfg.Slots),
	}
	x.fetches = backlog[int]{limit: fetchAtOnce, procs: j.procs, running: &j.background, work: func(index int) {
		j.fetchShard(x, index)
	}}
	x.kept.Store(j.kept.NewCache())
	x.ctx, x.cancel = context.WithCancel(j.ctx)
	a.Job.Local = x
	return x
}

// open opens a job. Its shards are added when tasks need them.
func (j *jobs) open(x *job) {
	j.procs.begin()
	defer j.procs.end()
	e := &batch.Opened{Job: x.Job}
	if x.manifest.Rows > maxRows {
		e.Err = fmt.Errorf("worker: the dataset has %d samples, a worker supports at most %d", x.manifest.Rows, maxRows)
	} else {
		x.open, e.Err = open.Open(x.spec, x.manifest, func(digest string, size int64) ([]byte, error) {
			return j.link.fetchBytes(x.ctx, digest, size)
		})
	}
	if e.Err != nil {
		e.Err = batch.FailureOf(e.Err)
		if x.ctx.Err() == nil {
			j.log.Warn("a job could not be set up", "job", x.ID, "reason", e.Err)
		}
	} else if k, ok := x.open.Kernel.(round.Demanding); ok && j.cfg.MemoryBytes > 0 {
		e.Demand, e.DemandFor = k.Demand()
	}
	j.step(e)
}

// fetchShard fetches a shard and adds it to its job.
func (j *jobs) fetchShard(x *job, index int) {
	opened, err := (*shard)(nil), x.ctx.Err()
	if err == nil {
		opened, err = j.addShard(x, index)
	}
	if err == nil {
		j.mu.Lock()
		x.shards = append(x.shards, opened)
		j.mu.Unlock()
	} else if f := (*batch.Failure)(nil); !errors.As(err, &f) {
		err = batch.Passing(err)
	}
	j.step(&batch.Fetched{Job: x.Job, Index: index, Err: err})
}

// addShard opens a shard and adds it to its job. If the shard does not match the manifest, its file
// is read once more, because the file may have changed since it was verified.
func (j *jobs) addShard(x *job, index int) (*shard, error) {
	ref := x.manifest.Shards[index]
	for again := false; ; again = true {
		opened, err := j.cache.acquire(x.ctx, ref)
		if err != nil {
			return nil, err
		}
		if _, err = x.open.AddShard(index, opened.rows); err == nil {
			return opened, nil
		}
		j.cache.release(opened)
		if again {
			return nil, batch.Permanent(fmt.Errorf("shard %.12s: %w", ref.Digest, err))
		}
		j.cache.reverify(x.ctx, []dataset.ShardRef{ref})
	}
}

// computed is a result on its way from an executor to a storer.
type computed struct {
	job  *job
	task *batch.Task
	part []byte
	took time.Duration
}

// store stores results until computed is closed.
func (j *jobs) store() {
	for c := range j.computed {
		e := &batch.Stored{Job: c.job.Job, Task: c.task, Bytes: len(c.part), Took: c.took}
		var err error
		if e.Digest, err = j.results.put(c.part); err != nil {
			e.Err = batch.Passing(err)
		}
		j.step(e)
	}
}

// request returns the latest request of a task of a gather round.
func (j *jobs) request(t *batch.Task) batch.Request {
	j.mu.Lock()
	defer j.mu.Unlock()
	return t.Request
}

// stepper reports events to jobs, and sends what follows from them. One goroutine at a time uses
// it.
type stepper struct {
	jobs *jobs

	actions []batch.Action // of the latest event
	buf     []byte         // memory of messages
	need    protocol.Need
}

// step reports an event, and does what follows from it without the lock. If there is an action that
// only the caller can do, it is returned: Compute, Keep, KeepChunk or RefuseMessage.
func (s *stepper) step(e batch.Event) (left batch.Action) {
	j := s.jobs
	s.actions = j.apply(s.actions[:0], e)
	for i := 0; i < len(s.actions); i++ { // answers append to it
		switch a := s.actions[i].(type) {
		case batch.Compute, batch.Keep, batch.KeepChunk, batch.RefuseMessage:
			left = a
		case batch.Need:
			s.need = protocol.Need{Stamp: a.Stamp, Worker: j.id, Setup: a.Refs == nil, Refs: a.Refs}
			j.metrics.Needs.Inc()
			s.buf = s.need.Append(s.buf[:0])
			j.link.send(a.Reply, s.buf)
		case batch.Fail:
			f := batch.FailureOf(a.Err)
			j.metrics.TasksFailed.Inc()
			j.log.Warn("a task failed", "job", a.Stamp.Job, "round", a.Stamp.Round, "unit", a.Task, "permanent", f.Permanent,
				"reason", f)
			m := protocol.Fail{Stamp: a.Stamp, Worker: j.id, Task: a.Task, Permanent: f.Permanent, NonFinite: f.NonFinite,
				Unable: f.Unable, Reason: f.Error()}
			j.link.send(a.Reply, m.Append(nil))
		case batch.Announce:
			if m, ok := a.Task.Local.(*gathered).progress.again(a.Stamp); ok {
				j.link.send(a.Reply, m.Append(nil))
			}
			m := protocol.Result{
				Stamp: a.Stamp, Worker: j.id, Task: a.Task.Number,
				Compute: uint64(a.Took), Digest: a.Digest, Bytes: uint64(a.Bytes),
			}
			j.link.send(a.Reply, m.Append(nil))
		case batch.Answer:
			s.answer(a.Batch.Local.(*work), a.Batch.Reply)
			s.actions = j.apply(s.actions, &batch.Answered{Batch: a.Batch})
		case batch.RefuseJob:
			j.log.Warn("a job is not set up, because too many jobs are in use", "job", a.Job, "jobs", batch.MaxBusyJobs)
		case batch.Notice:
			j.notice(a)
		}
	}
	clear(s.actions) // they keep jobs in memory
	return left
}

func (j *jobs) notice(a batch.Notice) {
	switch a {
	case batch.Report:
		j.report()
	case batch.NoJobs:
		j.cache.clearWanted()
		if session := j.link.session.Load(); session != nil {
			session.conn.Room().Release()
		}
	case batch.CountStale:
		j.dropped("leader_epoch")
	case batch.CountLate:
		j.dropped("late")
	}
}

// answer sends the maximal nodes of the reduction tree that a batch has filled (design section
// 8.4).
func (s *stepper) answer(w *work, reply string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := &w.part
	p.Stamp, p.Worker = w.run.Stamp, s.jobs.id
	w.tree.Nodes(func(level, index int, sum *round.Partial) {
		p.Level, p.Index, p.Partial, p.Compute = uint8(level), uint32(index), sum, 0
		first, _ := slices.BinarySearch(w.run.Tasks, uint32(index<<level))
		for i := first; i < len(w.run.Tasks) && int(w.run.Tasks[i])>>level == index; i++ {
			p.Compute += uint64(w.took[i])
		}
		if 4*len(sum.F32)+4*len(sum.I32) >= longPart {
			parts := p.Parts(s.buf[:0])
			s.jobs.link.sendParts(reply, parts[:]...)
			return
		}
		s.buf = p.Append(s.buf[:0])
		s.jobs.link.send(reply, s.buf)
	})
	p.Partial = nil
}

// processors says on how many processors goroutines should run. While a worker computes only tasks
// of reduce rounds, which take a fraction of a millisecond, as many as it has slots are enough. With
// one more that is idle, each message wakes a thread there that looks for work in vain. That takes
// longer than a hop between goroutines. All other work (tasks of gather rounds, opening jobs,
// fetching and verifying shards) has all processors, so that it does not hold up tasks.
type processors struct {
	set       func(n int) // nil if the number does not change
	few, many int

	mu    sync.Mutex // guards what follows
	least bool       // true if few is in force
	other int        // what goes on that is not a task of a reduce round
	ended time.Time  // when such work ended last
}

// calmAfter is how long there must be no other work before few is enough. To change the number
// stops all goroutines for some ten microseconds.
const calmAfter = 50 * time.Millisecond

// newProcessors is for a number of slots and of processors. The number does not change if set is
// nil, or if there are not more processors than slots.
func newProcessors(slots, all int, set func(int)) *processors {
	if slots >= all {
		set = nil
	}
	return &processors{set: set, few: slots, many: all, ended: time.Now()}
}

// begin says that other work begins, and end that it ends. They nest. The worker's stop
// calls begin without end.
func (p *processors) begin() {
	if p.set == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.other++
	if p.least {
		p.least = false
		p.set(p.many)
	}
}

func (p *processors) end() {
	if p.set == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.other--
	p.ended = time.Now()
}

// step says that tasks of a reduce round have come.
func (p *processors) step() {
	if p.set == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.least && p.other == 0 && time.Since(p.ended) >= calmAfter {
		p.least = true
		p.set(p.few)
	}
}

// backlog does things in the background, in order, and at most limit of them at the same time.
type backlog[T comparable] struct {
	limit   int
	procs   *processors
	work    func(T)
	running *sync.WaitGroup // its goroutines

	mu     sync.Mutex // guards what follows
	queue  []T
	queued map[T]bool // the things in queue
	active int        // goroutines, at most limit
}

// add queues things, unless they are queued already.
func (b *backlog[T]) add(things ...T) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.queued == nil {
		b.queued = make(map[T]bool)
	}
	for _, x := range things {
		if !b.queued[x] {
			b.queued[x] = true
			b.queue = append(b.queue, x)
		}
	}
	for range min(b.limit-b.active, len(b.queue)) {
		b.active++
		b.running.Go(b.run)
	}
}

// run does what is queued until nothing is.
func (b *backlog[T]) run() {
	b.procs.begin()
	defer b.procs.end()
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.queue) > 0 {
		x := b.queue[0]
		b.queue = b.queue[1:]
		delete(b.queued, x)
		b.mu.Unlock()
		b.work(x)
		b.mu.Lock()
	}
	b.active--
}
