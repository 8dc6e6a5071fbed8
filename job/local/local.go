// Package local runs whole jobs in this process, without NATS and Raft: the
// oracle that every cluster is held against. A worker runs sub-jobs by it too.
package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/job/open"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

// Data is a dataset in memory, as dataset.Build makes it.
type Data struct {
	Manifest *dataset.Manifest
	Shards   []*dataset.Rows
	// Assigned is each row's fold where the job's split names a list of folds.
	Assigned []uint16
	// Weights are the bytes of those that the job names (Job.Weights).
	Weights []byte
}

// Options says how a job is run; none of them changes its result.
type Options struct {
	// Lanes is the number of tasks computed at a time; 0: one for each CPU that Go may use.
	Lanes int
	// Kept is the memory for derived values, which may be shared; nil: one of
	// engine.DerivedLimit bytes.
	Kept *engine.DerivedMemory
	// Memory, where not 0, bounds what a task on the whole dataset may take in bytes (round.Demanding).
	Memory int64
	// Progress, where set, is called at most ten times a second and at the end,
	// never concurrently. For a job with sub-jobs it sums over these.
	Progress func(round.Progress)
	// Resume continues a job that is not one of folds; zero: from its beginning.
	Resume Checkpoint
	// Model, where set, has the model file of a job that is not one of folds written
	// to it; Outcome.Model is then empty.
	Model io.Writer
	// Checkpoint, where set, is handed the state of such a job now and then; the
	// bytes are valid during the call only.
	Checkpoint func(Checkpoint)
	// CheckpointEvery is the least time between two checkpoints; 0: two seconds.
	CheckpointEvery time.Duration
	// Points, where not 0, has the learning curve of such a job recorded in Outcome.Curve,
	// with at most so many points; Timed gives them the seconds since Run. The folds of a
	// job of folds have their curves in any case, without seconds.
	Points int
	Timed  bool
	// Report, where set, is told how many rounds of such a job are folded and how far it
	// is, at most twice a second and at its end.
	Report func(rounds uint64, p round.Progress)

	// Spend has Outcome.Spent set.
	Spend bool
}

// Checkpoint is a trainer's state and the number of rounds folded into it.
type Checkpoint struct {
	Rounds uint64
	State  []byte
	Curve  []byte // encoded; empty where none is recorded
}

// Run runs a job to its end, or until ctx is done.
func Run(ctx context.Context, j *round.Job, d *Data, o Options) (*pipeline.Outcome, error) {
	job, err := d.open(j)
	if err != nil {
		return nil, err
	}
	if err := o.allows(job.Kernel); err != nil {
		return nil, err
	}
	if o.Lanes < 1 {
		o.Lanes = runtime.GOMAXPROCS(0)
	}
	r, began := newRunner(job, &o), time.Now()
	outcome, err := r.run(ctx, job, o)
	if err != nil {
		return nil, err
	}
	if o.Spend {
		outcome.SetSpent(r.spent.Seconds(), time.Since(began).Seconds()*float64(max(1, min(r.most, o.Lanes))))
	}
	return outcome, nil
}

// ErrMemory is wrapped by Run's error about a job whose tasks take more than Options.Memory.
var ErrMemory = errors.New("the job needs more memory than is allowed")

// allows returns an error if a task on the whole dataset takes too much.
func (o *Options) allows(k round.Kernel) error {
	d, ok := k.(round.Demanding)
	if !ok || o.Memory == 0 {
		return nil
	}
	if bytes, what := d.Demand(); bytes > o.Memory {
		return fmt.Errorf("%w: a task on the whole dataset needs up to %d bytes (%s), but --memory allows %d", ErrMemory, bytes, what, o.Memory)
	}
	return nil
}

// open opens a job with all shards.
func (d *Data) open(j *round.Job) (*open.Job, error) {
	blob := func(digest string, _ int64) ([]byte, error) {
		if digest == j.Weights {
			return d.Weights, nil
		}
		return dataset.EncodeFolds(d.Assigned), nil
	}
	job, err := open.Open(j, d.Manifest, blob)
	for i, shard := range d.Shards {
		if err == nil {
			_, err = job.AddShard(i, shard)
		}
	}
	return job, err
}

type runner struct {
	job   *open.Job
	kept  *engine.DerivedMemory
	spent engine.RoundTimes
	most  int // sub-jobs of a round of the job
}

func newRunner(job *open.Job, o *Options) *runner {
	r := &runner{job: job, kept: o.Kept}
	if r.kept == nil {
		r.kept = engine.NewDerivedMemory(engine.DerivedLimit)
	}
	return r
}

// run drives one job, whose sub-jobs come back here.
func (r *runner) run(ctx context.Context, job *open.Job, o Options) (outcome *pipeline.Outcome, err error) {
	defer engine.Guard(&err, "training")
	trainer, err := pipeline.New(job.Spec, job.Data.Manifest, o.Resume.State)
	if err != nil {
		return nil, err
	}
	pipeline.ShareModel(trainer, job.Kernel)
	observe, tells := func(uint64, round.Trainer) error { return nil }, newTeller(&o)
	f := &family{trainer: trainer, teller: tells, run: r.subJobs(job)}
	if job.Spec.Folds == 0 && job.Spec.Cells == nil {
		line, err := o.record(trainer)
		if err != nil {
			return nil, err
		}
		c := &checkpointer{o: &o, line: line, last: time.Now()}
		observe = c.observer(line.observer(observe))
		f.take = c.taker(trainer, tells)
		defer func() { line.finish(outcome) }()
	}
	x := engine.NewLocal(job.Kernel, job.Data, o.Lanes, f.subJob)
	x.UseMemory(r.kept)
	x.OnResult(f.result)
	defer x.ReleaseMemory()
	f.Executor = r.spent.Measure(x, true)
	err = engine.Drive(ctx, trainer, o.Resume.Rounds, f, tells.observer(observe))
	if err != nil {
		return nil, err
	}
	if job == r.job {
		r.most = f.most
	}
	tells.end(trainer.Progress())
	if o.Model != nil {
		return pipeline.WriteOutcome(trainer, o.Model)
	}
	return trainer.Outcome()
}

// SubJob runs a sub-job, such as a fold, of the job that parent is, which has all shards. It
// returns the encoded outcome: the same bytes wherever it ran. Of o, Kept, Resume,
// Checkpoint and Report count.
func SubJob(ctx context.Context, parent *open.Job, j *round.Job, o Options) ([]byte, error) {
	return newRunner(parent, &o).subJobs(parent)(ctx, j, o)
}

// child runs a sub-job in one lane, with a learning curve of at most o.Points points; others run
// beside it.
func (r *runner) subJob(ctx context.Context, j *round.Job, o Options) ([]byte, error) {
	if j.Folds > 0 || j.Cells != nil {
		return nil, errors.New("a sub-job cannot have folds or runs of its own")
	}
	child, err := r.job.SubJob(j)
	if err != nil {
		return nil, err
	}
	o.Lanes = 1
	outcome, err := r.run(ctx, child, o)
	if err != nil {
		return nil, err
	}
	return outcome.Encode()
}

// children returns what runs the sub-jobs of a job: of a job of runs those that fail have
// outcomes too. Cells have curves where these are kept, and the jobs that a run consists of none.
func (r *runner) subJobs(job *open.Job) subJobRunner {
	cells, points := job.Spec.Cells, curve.FoldPoints
	if cells != nil && !cells.Curves || cells == nil && r.job.Spec.Cells != nil {
		points = 0
	}
	return func(ctx context.Context, j *round.Job, o Options) ([]byte, error) {
		o.Points = points
		part, err := r.subJob(ctx, j, o)
		err = pipeline.NameFold(job.Spec, j, job.Data.Manifest, err)
		if cells != nil && ofCell(ctx, err) {
			return pipeline.FailedOutcome(err).Encode()
		}
		return part, err
	}
}

// ofCell reports whether an error is the run's own, wherever it runs: neither an end that was
// asked for nor a fault at an address, of a shard's file that cannot be read.
func ofCell(ctx context.Context, err error) bool {
	var fault interface{ Addr() uintptr }
	return err != nil && ctx.Err() == nil && !errors.As(err, &fault)
}

// Open opens a job on the data, for Child.
func Open(j *round.Job, d *Data) (*open.Job, error) { return d.open(j) }

// childRunner runs a sub-job and returns its encoded outcome.
type subJobRunner func(ctx context.Context, j *round.Job, o Options) ([]byte, error)

// family is a job and the sub-jobs of the round that it is in. It implements
// engine.Executor, to see the rounds, and runs the sub-jobs.
type family struct {
	engine.Executor
	trainer round.Trainer
	teller  *teller
	take    func(unit int, part []byte) error // a result, before the round ends; nil: only at its end
	run     subJobRunner
	most    int // children that a round had

	mu      sync.Mutex
	subJobs []*round.Job
	tasks   []round.TaskProgress // of a gather round
	began   time.Time            // the round
}

// Do implements engine.Executor.
func (f *family) Do(ctx context.Context, n uint64, r *round.Round, res *round.Result) error {
	if f.subJobs = nil; r.SubJob != nil { // each task has one child, for all who ask
		for u := range r.Tasks {
			f.subJobs = append(f.subJobs, r.SubJob(u))
		}
		of := *r
		of.SubJob, r = round.Jobs(f.subJobs...), &of
	}
	if f.most = max(f.most, len(f.subJobs)); r.How == round.Gather {
		f.tasks, f.began = make([]round.TaskProgress, r.Tasks), time.Now()
		for u := range f.tasks {
			f.tasks[u].Loss = -1
			f.tasks[u].Done = r.Has != nil && r.Has[u]
		}
	}
	return f.Executor.Do(ctx, n, r, res)
}

// subJob runs one of the round's sub-jobs.
func (f *family) subJob(ctx context.Context, j *round.Job) ([]byte, error) {
	unit := slices.Index(f.subJobs, j)
	f.put(unit, round.Progress{Loss: -1}, false)
	part, err := f.run(ctx, j, Options{Progress: func(p round.Progress) { f.put(unit, p, false) }})
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	last := f.tasks[unit].Progress
	f.mu.Unlock()
	f.put(unit, last, true)
	if f.take == nil {
		return part, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return part, f.take(unit, part)
}

// result notes how far a task without a sub-job is by its result. What is wrong with the result, Fold says.
func (f *family) result(task int, result []byte) {
	g, ok := f.trainer.(round.TaskReporter)
	if !ok || f.subJobs != nil || !f.teller.asked() {
		return
	}
	if p, err := g.ResultProgress(result); err == nil {
		f.put(task, p, true)
	}
}

// put notes how far a task is, and tells how far all are together.
func (f *family) put(task int, p round.Progress, done bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := &f.tasks[task]
	t.Note(p, time.Since(f.began).Seconds())
	t.Done = done
	if g, ok := f.trainer.(round.TaskReporter); ok {
		f.teller.tell(func() round.Progress { return g.RoundProgress(f.tasks) })
	}
}

// line records a job's learning curve; nil records nothing.
type line struct {
	*curve.Recorder
	began time.Time // zero: points have no seconds
}

// record begins or continues the curve of a job whose trainer begins or continues.
func (o *Options) record(t round.Trainer) (*line, error) {
	if o.Points == 0 {
		return nil, nil
	}
	var before *curve.Curve
	if len(o.Resume.Curve) > 0 {
		c, err := curve.Decode(o.Resume.Curve)
		if err != nil {
			return nil, err
		}
		before = c
	}
	l := &line{Recorder: curve.NewRecorder(o.Points, before)}
	if o.Timed {
		l.began = time.Now()
	}
	l.Observe(t.Progress(), l.millis())
	return l, nil
}

func (l *line) millis() int64 {
	if l.began.IsZero() {
		return curve.Unknown
	}
	return time.Since(l.began).Milliseconds()
}

// observer records what a trainer says, beside another observer.
func (l *line) observer(beside engine.Observer) engine.Observer {
	if l == nil {
		return beside
	}
	return func(rounds uint64, t round.Trainer) error {
		l.Follow(t, l.millis())
		return beside(rounds, t)
	}
}

// encoded returns the curve so far, for a checkpoint.
func (l *line) encoded() []byte {
	if l == nil {
		return nil
	}
	return l.Curve().Append(nil)
}

// finish gives an outcome its curve; nil: the job did not end.
func (l *line) finish(o *pipeline.Outcome) {
	if l == nil || o == nil {
		return
	}
	l.End()
	o.Curve = l.Curve()
}

// checkpointEvery is the time between two checkpoints where Options.CheckpointEvery is not set.
const checkpointEvery = 2 * time.Second

// checkpointer hands on the state of a job now and then, where somebody asked for it.
type checkpointer struct {
	o    *Options
	line *line
	buf  []byte
	last time.Time
}

// observer hands on the state after rounds, after another observer.
func (c *checkpointer) observer(other engine.Observer) engine.Observer {
	if c.o.Checkpoint == nil {
		return other
	}
	return func(rounds uint64, t round.Trainer) error {
		if err := other(rounds, t); err != nil {
			return err
		}
		if time.Since(c.last) < cmp.Or(c.o.CheckpointEvery, checkpointEvery) {
			return nil
		}
		return c.hand(rounds, t)
	}
}

// taker has a trainer take the results of sub-jobs as they come, and hands its state on: a
// job that goes on elsewhere then does not run these again. It is nil where nobody asked for
// states, or the trainer takes nothing.
func (c *checkpointer) taker(t round.Trainer, tells *teller) func(unit int, part []byte) error {
	k, ok := t.(round.ResultTaker)
	if c.o.Checkpoint == nil || !ok {
		return nil
	}
	return func(unit int, part []byte) error {
		if err := k.TakeResult(unit, part); err != nil {
			return err
		}
		return c.hand(tells.rounds, t)
	}
}

func (c *checkpointer) hand(rounds uint64, t round.Trainer) (err error) {
	if c.buf, err = t.AppendState(c.buf[:0]); err != nil {
		return err
	}
	c.o.Checkpoint(Checkpoint{rounds, c.buf, c.line.encoded()})
	c.last = time.Now()
	return nil
}

// The least times between two calls of Options.Progress, and of Options.Report.
const (
	showEvery   = 100 * time.Millisecond
	reportEvery = 500 * time.Millisecond
)

// teller tells those who asked how far a job is, at most as often as they want to hear. It asks
// the trainer only then, so that short rounds stay short.
type teller struct {
	o               *Options
	rounds          uint64 // folded
	shown, reported time.Time
}

func newTeller(o *Options) *teller {
	return &teller{o: o, rounds: o.Resume.Rounds, reported: time.Now()}
}

// asked reports whether anybody wants to hear how far the job is.
func (t *teller) asked() bool { return t.o.Progress != nil || t.o.Report != nil }

func (t *teller) tell(progress func() round.Progress) {
	if !t.asked() {
		return
	}
	now := time.Now()
	if t.o.Progress != nil && now.Sub(t.shown) >= showEvery {
		t.shown = now
		t.o.Progress(progress())
	}
	if t.o.Report != nil && now.Sub(t.reported) >= reportEvery {
		t.reported = now
		t.o.Report(t.rounds, progress())
	}
}

// observer tells after each round, before another observer.
func (t *teller) observer(other engine.Observer) engine.Observer {
	return func(rounds uint64, tr round.Trainer) error {
		t.rounds = rounds
		t.tell(tr.Progress)
		return other(rounds, tr)
	}
}

// end tells of the end of the job. One that stopped early has done all its steps.
func (t *teller) end(p round.Progress) {
	p.Steps = p.Step
	if t.o.Progress != nil {
		t.o.Progress(p)
	}
	if t.o.Report != nil {
		t.o.Report(t.rounds, p)
	}
}
