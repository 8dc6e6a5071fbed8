package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/job/open"
	"github.com/coppice-ldl/coppice/metrics"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/worker/batch"
)

// fetchAtOnce is how many shards of a job are fetched at the same time.
const fetchAtOnce = 4

// maxRows bounds the samples of a dataset. A worker keeps some bytes for each of them, even if it has no shard.
const maxRows = 1 << 28

// jobs computes what the leader asks for. Package batch decides, and jobs performs its actions: those that are quick with
// the lock held, and the others, which send or copy, by the goroutine that reported the event (see stepper).
type jobs struct {
	cfg     Config
	id      string // of the worker
	log     *slog.Logger
	metrics *metrics.Worker
	drops   drops
	link    *link
	cache   *cache
	results *results
	kept    *engine.DerivedMemory // derived values of all jobs
	procs   *processors
	report  func() // asks for a full heartbeat

	ctx        context.Context // parent of the contexts of jobs
	executors  [batch.Executors]*executors
	busy       atomic.Int64   // executors that compute
	background sync.WaitGroup // goroutines that open jobs and fetch shards
	computed   chan computed  // results of gather rounds, from executors to storers
	storing    sync.WaitGroup // storers

	mu      sync.Mutex // guards what follows, and each field Local of the machine
	machine *batch.Machine
	actions []batch.Action // memory of apply
}

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

	shards   []*shard // added to open. jobs.mu guards it and what follows.
	queue    []int    // shards to fetch
	fetchers int      // goroutines that do, at most fetchAtOnce
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
	j.step(batch.Event{Kind: batch.Heard, Order: batch.Order{Epoch: epoch}})
	return epoch == j.epoch()
}

// reset forgets all jobs, and goes on from a leader epoch.
func (j *jobs) reset(epoch uint64) {
	j.step(batch.Event{Kind: batch.Reset, Order: batch.Order{Epoch: epoch}})
}

// apply applies an event, performs the actions that are quick, and appends the others to later.
func (j *jobs) apply(later []batch.Action, e batch.Event) []batch.Action {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.actions = j.machine.Step(j.actions[:0], e)
	for i := range j.actions {
		switch a := &j.actions[i]; a.Kind {
		case batch.Open:
			x := j.newJob(a)
			j.background.Go(func() { j.open(x) })
		case batch.Fetch:
			x := a.Job.Local.(*job)
			x.queue = append(x.queue, a.Index)
			if x.fetchers < fetchAtOnce {
				x.fetchers++
				j.background.Go(func() { j.fetchShards(x) })
			}
		case batch.Cancel:
			a.Job.Local.(*job).cancel()
		case batch.Close:
			x := a.Job.Local.(*job)
			for _, s := range x.shards {
				j.cache.release(s)
			}
			x.kept.Load().Close()
		case batch.Keep:
			l, _ := a.Local.(*lent)
			keepValue(a.Version, a.Bytes, l)
			later = append(later, *a)
		case batch.KeepChunk:
			keepChunk(a.Version, a.Index, a.Local.(*chunk))
			later = append(later, *a)
		case batch.Release:
			a.Version.Local.(*value).release(j.link)
		case batch.Begin:
			beginBatch(a.Job.Local.(*job), a.Batch, a.Run)
			if a.Batch.Local.(*work).run.How == round.Sum {
				j.procs.step()
			}
		case batch.Wake:
			j.executors[a.Executor].ready(a.N)
		case batch.Retire:
			a.Batch.Local.(*work).retire()
		case batch.Stop:
			a.Task.Local.(*gathered).cancel()
		case batch.DropResult:
			j.results.release(a.Digest)
		default:
			later = append(later, *a)
		}
	}
	clear(j.actions)
	return later
}

// newJob makes the job of an Open action.
func (j *jobs) newJob(a *batch.Action) *job {
	x := &job{
		Job: a.Job, spec: a.Setup.Job, manifest: a.Setup.Manifest,
		scratch: make([]any, int(batch.Executors)*j.cfg.Slots),
	}
	x.kept.Store(j.kept.NewCache())
	x.ctx, x.cancel = context.WithCancel(j.ctx)
	a.Job.Local = x
	return x
}

// open opens a job. Its shards are added when tasks need them.
func (j *jobs) open(x *job) {
	j.procs.begin()
	defer j.procs.end()
	e := batch.Event{Kind: batch.Opened, Job: x.Job}
	if x.manifest.Rows > maxRows {
		e.Err = fmt.Errorf("worker: the dataset has %d samples, a worker supports at most %d", x.manifest.Rows, maxRows)
	} else {
		x.open, e.Err = open.Open(x.spec, x.manifest, func(digest string, size int64) ([]byte, error) { return j.link.fetchBytes(x.ctx, digest, size) })
	}
	if e.Err != nil {
		e.Err = batch.FailureOf(e.Err)
		if x.ctx.Err() == nil {
			j.log.Warn("a job could not be set up", "job", x.ID, "reason", e.Err)
		}
	} else if k, ok := x.open.Kernel.(round.Demanding); ok {
		e.Demand, e.DemandFor = k.Demand()
	}
	j.step(e)
}

// fetchShards fetches the shards in a job's queue until it is empty.
func (j *jobs) fetchShards(x *job) {
	j.procs.begin()
	defer j.procs.end()
	for {
		j.mu.Lock()
		if len(x.queue) == 0 {
			x.fetchers--
			j.mu.Unlock()
			return
		}
		index := x.queue[0]
		x.queue = x.queue[1:]
		j.mu.Unlock()
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
		j.step(batch.Event{Kind: batch.Fetched, Job: x.Job, Index: index, Err: err})
	}
}

// addShard opens a shard and adds it to its job. If the shard does not match the manifest, its file is read once more,
// because the file may have changed since it was verified.
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
		j.cache.distrust(x.ctx, []dataset.ShardRef{ref})
	}
}

// distrust forgets a job whose shards could not be read. Their files are verified, or fetched, when the leader sets the
// job up again.
func (j *jobs) distrust(x *job) {
	j.cache.distrust(j.ctx, x.manifest.Shards)
	j.step(batch.Event{Kind: batch.Distrusted, Job: x.Job})
}

// addressee returns whom the answers about a task of a gather round are for.
func (j *jobs) addressee(t *batch.Task) (protocol.Stamp, string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return t.Stamp, t.Reply
}

// begin starts the executors and storers.
func (j *jobs) begin() {
	for kind, pool := range j.executors {
		for i := range j.cfg.Slots {
			x := &executor{stepper: stepper{jobs: j}, pool: pool, number: kind*j.cfg.Slots + i}
			pool.running.Go(x.run)
		}
	}
	for range storers {
		j.storing.Go(j.store)
	}
}

// stop ends all goroutines. Jobs were forgotten before, so that none of them goes on for long.
func (j *jobs) stop() {
	j.background.Wait()
	for _, pool := range j.executors {
		pool.close()
	}
	close(j.computed)
	j.storing.Wait()
}
