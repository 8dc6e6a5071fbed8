package dispatch

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/engine/schedule"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/internal/digests"
	"github.com/coppice-ldl/coppice/internal/num"
	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/protocol"
)

// results has the results of gather rounds brought here, recorded and read. Its goroutines tell their ends by mail.
type results struct {
	x *Executor

	// The round.
	ctx      context.Context
	work     sync.WaitGroup
	digests  []digests.Digest // by task
	bytes    [][]byte         // by task; nil if recorded before the round, or if Gather.Apart
	took     []uint64         // nanoseconds of computing, by task; 0: not known
	progress map[int]*round.Progress
	own      map[int][]byte // what the leader computed, by task

	// Short results are recorded asynchronously, beyond the end of their round.
	background context.Context
	cancel     context.CancelFunc
	recording  sync.WaitGroup
	began      time.Time
}

// close stops recording and waits for it.
func (s *results) close() {
	s.cancel()
	s.recording.Wait()
}

// begin begins a gather round. The function that it returns waits for what it does, and lets go of the round's results: they may be
// large.
func (s *results) begin(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	s.ctx = ctx
	n := s.x.r.Tasks
	s.digests, s.bytes, s.took = make([]digests.Digest, n), nil, make([]uint64, n)
	s.progress, s.own = make(map[int]*round.Progress), make(map[int][]byte)
	if !s.x.r.Gather().Apart {
		s.bytes = make([][]byte, n)
	}
	s.x.outbox.checkpoints = nil
	return func() {
		cancel()
		s.work.Wait()
		s.digests, s.bytes, s.took, s.progress, s.own = nil, nil, nil, nil, nil
	}
}

// Recording.
const (
	// recordEvery is the time between two moments at which short results are recorded: they share the disk's syncs and the
	// log's messages. A leader that ends loses an interval's work.
	recordEvery = protocol.CommitInterval
	// recordPause passes before a result that could not be brought here is computed again, and before recording is tried
	// again.
	recordPause = 250 * time.Millisecond
)

// gathered is the message of a worker that has a result.
func (s *results) gathered(a *schedule.Action) *protocol.Result {
	return &protocol.Result{
		Stamp:  protocol.Stamp{Epoch: s.x.d.cfg.Epoch, Job: s.x.id, Round: s.x.number},
		Worker: a.Worker, Task: uint32(a.Task), Compute: uint64(a.Result.Took), Digest: a.Result.Digest.String(), Bytes: a.Result.Bytes,
	}
}

// store brings a result here, of a worker or of the leader itself. It is read as it comes: the end of the round does not wait
// for that.
func (s *results) store(a *schedule.Action) {
	c, result, own := s.gathered(a), a.Result, s.own[a.Task]
	delete(s.own, a.Task)
	leaders := a.Worker == schedule.Verifier
	s.work.Go(func() {
		e := end{event: schedule.Event{Kind: schedule.ResultStored, Round: c.Round, Task: int(c.Task), Result: result}, bytes: own}
		var err error
		if leaders {
			_, err = s.x.d.cfg.Results.Keep(own)
		} else {
			e.bytes, err = s.x.d.cfg.Results.Fetch(s.ctx, c)
		}
		if err != nil {
			wait.For(s.ctx, recordPause) // otherwise the worker would announce it again at once
			s.x.mail.putEnd(end{event: schedule.Event{Kind: schedule.ResultLost, Round: c.Round, Task: int(c.Task), Err: err}})
			return
		}
		e.progress = s.x.progress.read(e.bytes)
		s.x.mail.putEnd(e)
	})
}

// record has a result recorded that is here.
func (s *results) record(a *schedule.Action) {
	if s.bytes != nil {
		s.bytes[a.Task] = s.x.mem.in.end.bytes
	}
	s.progress[a.Task] = s.x.mem.in.end.progress
	r := recording{s.gathered(a), s.x.r.Tasks, s.x.progress.failed(s.progress[a.Task]), a.Async}
	if !a.Async {
		s.work.Go(func() { s.recordUntilDone(s.ctx, &r) })
		return
	}
	s.recording.Go(func() {
		wait.For(s.background, recordEvery-time.Since(s.began)%recordEvery)
		s.recordUntilDone(s.background, &r)
	})
}

// recording is a result to be recorded.
type recording struct {
	result *protocol.Result
	of     int  // tasks in the round
	failed bool // true if the result is of a run that failed
	async  bool
}

// recordUntilDone records a result, at as many tries as it takes. Later rounds wait for asynchronous recording that does not
// succeed at once.
func (s *results) recordUntilDone(ctx context.Context, r *recording) {
	c, async := r.result, r.async
	digest, _ := digests.Parse(c.Digest)
	e := end{event: schedule.Event{
		Kind: schedule.ResultRecorded, Round: c.Round, Task: int(c.Task),
		Result: schedule.Result{Digest: digest, Bytes: c.Bytes, Took: time.Duration(c.Compute)},
	}}
	for pause := recordPause; ctx.Err() == nil; pause = min(2*pause, schedule.LongestPause) {
		err := s.x.d.cfg.Results.Record(ctx, c, r.of, r.failed)
		switch {
		case errors.Is(err, ErrOver):
			e.over = fmt.Errorf("task %d: %w", c.Task, err)
		case errors.Is(err, blobs.ErrMissing):
			e.event.Kind, e.event.Err = schedule.ResultLost, err
		case err != nil:
			if async && !e.event.Late {
				e.event.Late = true
				s.x.mail.putEnd(end{event: schedule.Event{Kind: schedule.RecordingLate}})
			}
			s.x.d.cfg.Log.Warn("the result of a task could not be recorded; recording is tried again", "job", s.x.id, "unit", c.Task, "error", err)
			wait.For(ctx, pause)
			continue
		case async && !e.event.Late: // nobody waits for it
			return
		}
		s.x.mail.putEnd(e)
		return
	}
}

// skip has it recorded that tasks are not run, at as many tries as it takes.
func (s *results) skip(tasks []uint32, took time.Duration) {
	n := s.x.number
	s.work.Go(func() {
		for pause := recordPause; s.ctx.Err() == nil; pause = min(2*pause, schedule.LongestPause) {
			err := s.x.d.cfg.Results.Withhold(s.ctx, s.x.id, n, tasks, took)
			e := end{event: schedule.Event{Kind: schedule.SkipsRecorded, Round: n, Tasks: tasks}}
			if errors.Is(err, ErrOver) {
				e.over = fmt.Errorf("task %d: %w", tasks[0], err)
			}
			if err == nil || e.over != nil {
				s.x.mail.putEnd(e)
				return
			}
			s.x.d.cfg.Log.Warn("the list of tasks that are not run could not be recorded; recording is tried again", "job", s.x.id, "units", len(tasks), "error", err)
			wait.For(s.ctx, pause)
		}
	})
}

// end takes in that tasks have ended.
func (s *results) end(a *schedule.Action) {
	for _, task := range a.Tasks {
		delete(s.x.outbox.checkpoints, task)
		t := int(task)
		if a.Skipped {
			s.x.progress.notRun(t)
			continue
		}
		if !a.Known {
			s.digests[t], s.took[t] = a.Result.Digest, uint64(a.Result.Took)
		}
		s.x.progress.have(t, s.progress[t], time.Duration(s.took[t]), a.Known)
		delete(s.progress, t)
	}
}

// readKnown reads, from the results that were recorded before the round, how far their sub-jobs are.
func (s *results) readKnown() {
	known := make(map[int]digests.Digest)
	for t, d := range s.digests {
		if d != (digests.Digest{}) {
			known[t] = d
		}
	}
	n := s.x.number
	if len(known) == 0 || s.x.progress == nil {
		return
	}
	s.work.Go(func() {
		for t, d := range known {
			if result, err := s.x.d.cfg.Results.Load(s.ctx, d.String()); err == nil { // an error is found again at the end
				if p := s.x.progress.read(result); p != nil {
					s.x.mail.putEnd(end{event: schedule.Event{Round: n, Task: t}, progress: p, before: true})
				}
			}
		}
	})
}

// load fills the result of the round. Results that were recorded before it are read.
func (s *results) load(ctx context.Context, res *round.Result) error {
	res.Took = s.took
	if s.x.r.Gather().Apart {
		all := s.digests
		res.Load = func(task int) ([]byte, error) {
			if all[task] == (digests.Digest{}) { // it was not run
				return nil, nil
			}
			return s.x.d.cfg.Results.Load(ctx, all[task].String())
		}
		return nil
	}
	res.Gathered, res.Digests = s.bytes, make([]string, len(s.digests))
	for t, d := range s.digests {
		if res.Digests[t] = d.Text(); d == (digests.Digest{}) || s.bytes[t] != nil {
			continue
		}
		b, err := s.x.d.cfg.Results.Load(ctx, res.Digests[t])
		if err != nil {
			return err
		}
		s.bytes[t] = b
	}
	return nil
}

const million = 1_000_000

// sample draws the tasks that are audited, ascending. No result depends on which they are, so the source is any.
func sample(tasks int, ppm uint32) (list []int) {
	if ppm == 0 {
		return nil
	}
	for t := range tasks {
		if rand.Uint32N(million) < ppm {
			list = append(list, t)
		}
	}
	return list
}

// digestOfPartial returns a digest of a partial's numbers, bit for bit.
func digestOfPartial(p *round.Partial) (d digests.Digest) {
	h := sha256.New()
	var sizes []byte
	for _, n := range []int{p.Width, len(p.Index), len(p.F64), len(p.F32)} {
		sizes = binary.LittleEndian.AppendUint64(sizes, uint64(n))
	}
	for _, b := range [][]byte{sizes, num.BytesU32(p.Index), num.Bytes64(p.F64), num.Bytes32(p.F32), num.Bytes32(p.Values)} {
		h.Write(b)
	}
	h.Sum(d[:0])
	return d
}

// verification is the goroutines of a round that compute tasks on the leader.
type verification struct {
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup
}

// end stops the verification and waits for it.
func (v *verification) end() {
	if v.cancel != nil {
		v.cancel()
		v.work.Wait()
		v.cancel = nil
	}
}

// verify computes a task on the leader, one task at a time over all jobs.
func (x *Executor) verify(ctx context.Context, task int) {
	v := &x.verified
	if v.cancel == nil {
		v.ctx, v.cancel = context.WithCancel(ctx)
	}
	ctx = v.ctx
	c := &Case{ID: x.id, Job: x.job, Manifest: x.manifest, Round: x.r, Task: task}
	e := end{event: schedule.Event{Kind: schedule.LeaderComputed, Round: x.number, Task: task}}
	v.work.Go(func() {
		select {
		case <-ctx.Done():
			return
		case x.d.verifies <- struct{}{}:
		}
		defer func() { <-x.d.verifies }()
		if how := c.Round.Reduce(); how == nil {
			e.bytes, e.event.Err = x.d.cfg.Verifier.Gather(ctx, c)
			e.event.Result = schedule.Result{Digest: sha256.Sum256(e.bytes), Bytes: uint64(len(e.bytes))}
		} else {
			p := new(round.Partial)
			p.Reset(how.Shape)
			if e.event.Err = x.d.cfg.Verifier.Reduce(ctx, c, p); e.event.Err == nil {
				e.partial = p
				if err := engine.CheckFinite(p); err != nil {
					e.event.Result.NotFinite = err.Error()
				} else {
					e.event.Result.Digest = digestOfPartial(p)
				}
			}
		}
		if ctx.Err() == nil { // otherwise the round is over, or begins again
			x.mail.putEnd(e)
		}
	})
}
