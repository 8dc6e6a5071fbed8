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

// begin begins a gather round. The function that it returns waits for what it does, and lets go of the round's results:
// they may be large.
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

// gathered is the message of a worker that has the result of a task.
func (s *results) gathered(worker string, task int, r schedule.Result) *protocol.Result {
	return &protocol.Result{
		Stamp:  protocol.Stamp{Epoch: s.x.d.cfg.Epoch, Job: s.x.id, Round: s.x.number},
		Worker: worker, Task: uint32(task), Compute: uint64(r.Took), Digest: r.Digest.String(), Bytes: r.Bytes,
	}
}

// store brings a result here, of a worker or of the leader itself. It is read as it comes: the end of the round does
// not wait for that.
func (s *results) store(a *schedule.Store) {
	c := s.gathered(a.Worker, a.Task, a.Result)
	e := &storedResult{event: &schedule.ResultStored{Round: c.Round, Task: a.Task, Result: a.Result}, bytes: s.own[a.Task]}
	delete(s.own, a.Task)
	s.work.Go(func() {
		var err error
		if c.Worker == schedule.Verifier {
			_, err = s.x.d.cfg.Results.Keep(e.bytes)
		} else {
			e.bytes, err = s.x.d.cfg.Results.Fetch(s.ctx, c)
		}
		if err != nil {
			wait.For(s.ctx, recordPause) // otherwise the worker would announce it again at once
			s.x.mail.putEnd(&schedule.ResultLost{Round: c.Round, Task: int(c.Task), Err: err})
			return
		}
		e.progress = s.x.progress.read(e.bytes)
		s.x.mail.putEnd(e)
	})
}

// record has a result recorded that is here.
func (s *results) record(a *schedule.Record) {
	if s.bytes != nil {
		s.bytes[a.Task] = s.x.mem.in.stored.bytes
	}
	s.progress[a.Task] = s.x.mem.in.stored.progress
	r := recording{result: s.gathered("", a.Task, a.Result), of: s.x.r.Tasks,
		failed: s.x.progress.failed(s.progress[a.Task]), async: a.Async}
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

// recordUntilDone records a result, at as many tries as it takes. Later rounds wait for asynchronous recording that
// does not succeed at once.
func (s *results) recordUntilDone(ctx context.Context, r *recording) {
	c, async := r.result, r.async
	digest, _ := digests.Parse(c.Digest)
	late := false
	for pause := recordPause; ctx.Err() == nil; pause = min(2*pause, schedule.LongestPause) {
		err := s.x.d.cfg.Results.Record(ctx, c, r.of, r.failed)
		switch {
		case errors.Is(err, ErrOver):
			s.x.mail.putEnd(&roundOver{c.Round, fmt.Errorf("task %d: %w", c.Task, err), late})
		case errors.Is(err, blobs.ErrMissing):
			s.x.mail.putEnd(&schedule.ResultLost{Round: c.Round, Task: int(c.Task), Err: err, Late: late})
		case err != nil:
			if async && !late {
				late = true
				s.x.mail.putEnd(&schedule.RecordingLate{})
			}
			s.x.d.cfg.Log.Warn("the result of a task could not be recorded; recording is tried again", "job", s.x.id, "unit",
				c.Task, "error", err)
			wait.For(ctx, pause)
			continue
		case !async || late: // otherwise nobody waits for it
			result := schedule.Result{Digest: digest, Bytes: c.Bytes, Took: time.Duration(c.Compute)}
			s.x.mail.putEnd(&schedule.ResultRecorded{Round: c.Round, Task: int(c.Task), Result: result, Late: late})
		}
		return
	}
}

// skip has it recorded that tasks are not run, at as many tries as it takes.
func (s *results) skip(tasks []uint32, took time.Duration) {
	n := s.x.number
	s.work.Go(func() {
		for pause := recordPause; s.ctx.Err() == nil; pause = min(2*pause, schedule.LongestPause) {
			err := s.x.d.cfg.Results.Withhold(s.ctx, s.x.id, n, tasks, took)
			switch {
			case err == nil:
				s.x.mail.putEnd(&schedule.SkipsRecorded{Round: n, Tasks: tasks})
				return
			case errors.Is(err, ErrOver):
				s.x.mail.putEnd(&roundOver{n, fmt.Errorf("task %d: %w", tasks[0], err), false})
				return
			}
			s.x.d.cfg.Log.Warn("the list of tasks that are not run could not be recorded; recording is tried again", "job",
				s.x.id, "units", len(tasks), "error", err)
			wait.For(s.ctx, pause)
		}
	})
}

// end takes in that a task has ended.
func (s *results) end(a *schedule.Ended) {
	delete(s.x.outbox.checkpoints, uint32(a.Task))
	s.digests[a.Task], s.took[a.Task] = a.Result.Digest, uint64(a.Result.Took)
	s.x.progress.have(a.Task, s.progress[a.Task], a.Result.Took, false)
	delete(s.progress, a.Task)
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
					s.x.mail.putEnd(&knownProgress{n, t, p})
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
	for _, n := range []int{p.Width, len(p.Index), len(p.F64), len(p.F32), len(p.I32)} {
		sizes = binary.LittleEndian.AppendUint64(sizes, uint64(n))
	}
	for _, b := range [][]byte{sizes, num.BytesU32(p.Index), num.Bytes64(p.F64), num.Bytes32(p.F32),
		num.BytesI32(p.I32), num.Bytes32(p.Values)} {
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
	e := &verifiedResult{event: &schedule.LeaderComputed{Round: x.number, Task: task}}
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

// ProgressOptions says how the progress of gather rounds becomes known.
type ProgressOptions struct {
	Reporter round.TaskReporter // the job's trainer; nil: nothing becomes known
	// Count is told what tasks have done that was not counted yet.
	Count func(protocol.Work)
	// Show is told how far a round of so many tasks is, now and then.
	Show func(tasks int, p round.Progress)
}

// progress adds up how far the tasks of a gather round are. A task that is computed again counts once: by the most that
// was said of it. It is for people only. All methods but read are called by one goroutine; a nil progress does nothing.
type progress struct {
	ProgressOptions
	tasks   taskList
	of      int             // tasks
	counted []protocol.Work // by task: here, and by earlier leaders
	began   time.Time       // the round
	news    bool            // true if there is something to show
	shown   time.Time
}

func (p *progress) begin(r *round.Round) {
	if p != nil {
		p.tasks, p.of, p.news = newTaskList(p.Reporter, r.Tasks), r.Tasks, true
		p.counted, p.began = make([]protocol.Work, r.Tasks), time.Now()
	}
}

// end ends the round. Nothing of it is shown any longer.
func (p *progress) end() {
	if p != nil {
		p.tasks, p.counted, p.news = nil, nil, false
	}
}

// read returns how far a sub-job is by its result; nil: the result does not tell. It may be called concurrently.
func (p *progress) read(result []byte) *round.Progress {
	if p == nil {
		return nil
	}
	at, err := p.Reporter.ResultProgress(result)
	if err != nil { // Fold says what is wrong with it
		return nil
	}
	return &at
}

// failed reports whether a task that ended so is a run that failed.
func (p *progress) failed(at *round.Progress) bool {
	if p == nil || at == nil {
		return false
	}
	c, ok := p.Reporter.(round.TaskCounter)
	return ok && c.HasFailed(*at)
}

// have takes in that a task has a result, which a worker computed for so long; 0 if that is not known. at is how far
// the task is, if that is known; known is true if the result was recorded before the round began.
func (p *progress) have(task int, at *round.Progress, took time.Duration, known bool) {
	if p == nil {
		return
	}
	p.news = true
	p.tasks.end(task, false)
	if at != nil {
		p.tasks.set(task, *at, p.seconds())
		p.tasks.took(task, took.Seconds())
		p.add(task, protocol.Work{Steps: at.Step, Samples: at.Samples}, known)
	}
}

// notRun takes in that a task has ended without a result.
func (p *progress) notRun(task int) {
	if p != nil {
		p.news = true
		p.tasks.end(task, true)
	}
}

// report takes in what a worker says of a sub-job.
func (p *progress) report(m *protocol.Progress) {
	if p == nil {
		return
	}
	task := int(m.Task)
	p.counted[task] = p.counted[task].Or(m.Counted)
	moved := p.add(task, m.Done, false)
	at, was := m.Progress(), p.tasks.at(task)
	if !was.Done && (!was.Known || moved && at.Step >= was.Step) {
		p.news = true
		p.tasks.set(task, at, p.seconds())
	}
}

// seconds returns the time since the round began.
func (p *progress) seconds() float64 { return time.Since(p.began).Seconds() }

// add counts what a task has done beyond what is counted, and reports whether that is anything. If known is true it is
// counted already.
func (p *progress) add(task int, done protocol.Work, known bool) (moved bool) {
	more := done.Beyond(p.counted[task])
	p.counted[task] = p.counted[task].Or(done)
	moved = more != (protocol.Work{})
	if moved && !known {
		p.Count(more)
	}
	return moved
}

// show shows how far the round is, if that is news. To add a round up takes a time in proportion to its tasks, so a
// round with more tasks is shown less often.
func (p *progress) show(now time.Time) {
	if p == nil || !p.news || now.Sub(p.shown) < max(100*time.Millisecond, time.Duration(p.of)*10*time.Microsecond) {
		return
	}
	p.news, p.shown = false, now
	p.Show(p.of, p.tasks.progress())
}

// taskList is how far each task of a gather round is.
type taskList interface {
	at(task int) round.TaskProgress
	// set sets how far a task is, so many seconds after the beginning of the round. Whether it has ended stays as it is.
	set(task int, p round.Progress, at float64)
	// took sets how long a task was computed, unless its progress was heard of meanwhile.
	took(task int, seconds float64)
	// end notes that a task has ended.
	end(task int, notRun bool)
	progress() round.Progress // of the round
}

// newTaskList returns a list of tasks about which nothing is known.
func newTaskList(r round.TaskReporter, tasks int) taskList {
	if c, ok := r.(round.TaskCounter); ok {
		return &countedTasks{counter: c, tasks: make([]countedTask, tasks), counts: round.TaskCounts{Tasks: tasks}}
	}
	l := &listedTasks{r, make([]round.TaskProgress, tasks)}
	for i := range l.tasks {
		l.tasks[i].Loss = -1
	}
	return l
}

// listedTasks is the list that a TaskReporter is given.
type listedTasks struct {
	reporter round.TaskReporter
	tasks    []round.TaskProgress
}

func (l *listedTasks) at(task int) round.TaskProgress { return l.tasks[task] }

func (l *listedTasks) set(task int, p round.Progress, at float64) { l.tasks[task].Note(p, at) }

func (l *listedTasks) took(task int, seconds float64) {
	if t := &l.tasks[task]; !t.Timed() {
		t.Time.Began, t.Time.From = t.Time.Last-seconds, 0
	}
}

func (l *listedTasks) end(task int, notRun bool) {
	l.tasks[task].Done, l.tasks[task].NotRun = true, notRun
}

func (l *listedTasks) progress() round.Progress { return l.reporter.RoundProgress(l.tasks) }

// countedTasks counts tasks: there may be a million.
type countedTasks struct {
	counter round.TaskCounter
	tasks   []countedTask
	counts  round.TaskCounts
}

type countedTask struct {
	step, samples               uint64
	known, done, notRun, failed bool
}

func (l *countedTasks) at(task int) round.TaskProgress {
	t := &l.tasks[task]
	return round.TaskProgress{Progress: round.Progress{Step: t.step, Samples: t.samples, Loss: -1}, Known: t.known,
		Done: t.done, NotRun: t.notRun}
}

func (l *countedTasks) took(int, float64) {}

func (l *countedTasks) set(task int, p round.Progress, _ float64) {
	t := &l.tasks[task]
	l.count(t, -1)
	t.step, t.samples, t.known, t.failed = p.Step, p.Samples, true, l.counter.HasFailed(p)
	l.count(t, 1)
}

func (l *countedTasks) end(task int, notRun bool) {
	t := &l.tasks[task]
	l.count(t, -1)
	t.done, t.notRun = true, notRun
	l.count(t, 1)
}

// count counts a task in (1) or out (-1).
func (l *countedTasks) count(t *countedTask, n int) {
	c := &l.counts
	c.Samples += uint64(n) * t.samples
	switch {
	case t.done:
		c.Done += n
		if t.failed {
			c.Failed += n
		}
		if t.notRun {
			c.NotRun += n
		}
	case t.known:
		c.Running += n
	}
}

func (l *countedTasks) progress() round.Progress { return l.counter.CountedProgress(l.counts) }
