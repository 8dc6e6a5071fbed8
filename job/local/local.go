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
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/job/open"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

// Data is a dataset in memory, as dataset.Build makes it.
type Data struct {
	Manifest *dataset.Manifest
	Shards   []*dataset.Rows
	// Assigned is each row's fold where the job's split names a list of folds.
	Assigned []uint16
	// Groups is each row's group, if the dataset has groups.
	Groups []uint16
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
	job, err := Open(j, d)
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
		return fmt.Errorf("%w: a task on the whole dataset needs up to %s (%s), but --memory allows %s", ErrMemory,
			units.Format(bytes), what, units.Format(o.Memory))
	}
	return nil
}

// Open opens a job on the data, for SubJob.
func Open(j *round.Job, d *Data) (*open.Job, error) {
	blob := func(digest string, _ int64) ([]byte, error) {
		switch g := d.Manifest.Groups; {
		case digest == j.Weights:
			return d.Weights, nil
		case g != nil && digest == g.Digest:
			return dataset.EncodeFolds(d.Groups), nil
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
	return &runner{job: job, kept: cmp.Or(o.Kept, engine.NewDerivedMemory(engine.DerivedLimit))}
}

// run drives one job, whose sub-jobs come back here.
func (r *runner) run(ctx context.Context, job *open.Job, o Options) (outcome *pipeline.Outcome, err error) {
	defer engine.Guard(&err, "training")
	trainer, err := pipeline.New(job.Spec, job.Data.Manifest, o.Resume.State)
	if err != nil {
		return nil, err
	}
	pipeline.ShareModel(trainer, job.Kernel)
	f := &family{
		o: &o, trainer: trainer, run: r.subJobs(job),
		rounds: o.Resume.Rounds, reported: time.Now(), saved: time.Now(),
	}
	if job.Spec.Folds > 0 || job.Spec.Cells != nil {
		o.Points, o.Checkpoint = 0, nil
	}
	if err := f.record(); err != nil {
		return nil, err
	}
	x := engine.NewLocal(job.Kernel, job.Data, o.Lanes, f.subJob)
	x.UseMemory(r.kept)
	x.OnResult(f.result)
	defer x.ReleaseMemory()
	f.Executor = r.spent.Measure(x, true)
	if err := engine.Drive(ctx, trainer, o.Resume.Rounds, f, f.observe); err != nil {
		return nil, err
	}
	if job == r.job {
		r.most = f.most
	}
	f.end()
	if o.Model != nil {
		outcome, err = pipeline.WriteOutcome(trainer, o.Model)
	} else {
		outcome, err = trainer.Outcome()
	}
	if err == nil && f.curve != nil {
		f.curve.End()
		outcome.Curve = f.curve.Curve()
	}
	return outcome, err
}

// SubJob runs a sub-job, such as a fold, of the job that parent is, which has all shards. It
// returns the encoded outcome: the same bytes wherever it ran. Of o, Kept, Resume,
// Checkpoint and Report count.
func SubJob(ctx context.Context, parent *open.Job, j *round.Job, o Options) ([]byte, error) {
	return newRunner(parent, &o).subJobs(parent)(ctx, j, o)
}

// subJobs returns what runs the sub-jobs of a job, each in one lane, because others run at the same
// time. Of a job of runs, those that fail have outcomes too. Runs have curves if these are kept, and
// the jobs that a run consists of have none.
func (r *runner) subJobs(parent *open.Job) subJobRunner {
	cells, points := parent.Spec.Cells, curve.FoldPoints
	if cells != nil && !cells.Curves || cells == nil && r.job.Spec.Cells != nil {
		points = 0
	}
	return func(ctx context.Context, j *round.Job, o Options) ([]byte, error) {
		o.Points, o.Lanes = points, 1
		var outcome *pipeline.Outcome
		job, err := r.job.SubJob(j)
		switch {
		case err != nil:
		case j.Folds > 0 || j.Cells != nil:
			err = errors.New("a sub-job cannot have folds or runs of its own")
		default:
			outcome, err = r.run(ctx, job, o)
		}
		err = pipeline.NameFold(parent.Spec, j, parent.Data.Manifest, err)
		if pipeline.SubJobsMayFail(parent.Spec) && ofSubJob(ctx, err) {
			outcome, err = pipeline.FailedOutcome(err), nil
		}
		if err != nil {
			return nil, err
		}
		return outcome.Encode()
	}
}

// ofSubJob reports whether an error is the sub-job's own, wherever it runs: neither an end that was
// asked for nor a fault at an address, of a shard's file that cannot be read.
func ofSubJob(ctx context.Context, err error) bool {
	var fault interface{ Addr() uintptr }
	return err != nil && ctx.Err() == nil && !errors.As(err, &fault)
}

// checkpointEvery is the time between two checkpoints if Options.CheckpointEvery is not set.
const checkpointEvery = 2 * time.Second

// The least times between two calls of Options.Progress, and of Options.Report.
const (
	showEvery   = 100 * time.Millisecond
	reportEvery = 500 * time.Millisecond
)

// subJobRunner runs a sub-job and returns its encoded outcome.
type subJobRunner func(ctx context.Context, j *round.Job, o Options) ([]byte, error)

// family is a job and the sub-jobs of the round that it is in. It implements
// engine.Executor, to see the rounds, and runs the sub-jobs. It tells those who asked how far the job
// is, at most as often as they want to hear. It asks the trainer only then, so that short rounds stay
// short.
type family struct {
	engine.Executor
	o       *Options
	trainer round.Trainer
	run     subJobRunner
	most    int // sub-jobs that a round had

	rounds                 uint64 // folded
	shown, reported, saved time.Time
	state                  []byte          // memory of checkpoints
	curve                  *curve.Recorder // nil: no learning curve is recorded
	started                time.Time       // zero: points have no seconds

	mu      sync.Mutex
	subJobs []*round.Job
	tasks   []round.TaskProgress // of a gather round
	began   time.Time            // the round
}

// record begins or continues the curve of a job whose trainer begins or continues.
func (f *family) record() error {
	if f.o.Points == 0 {
		return nil
	}
	var before *curve.Curve
	if len(f.o.Resume.Curve) > 0 {
		var err error
		if before, err = curve.Decode(f.o.Resume.Curve); err != nil {
			return err
		}
	}
	if f.o.Timed {
		f.started = time.Now()
	}
	f.curve = curve.NewRecorder(f.o.Points, before)
	f.curve.Observe(f.trainer.Progress(), f.millis())
	return nil
}

func (f *family) millis() int64 {
	if f.started.IsZero() {
		return curve.Unknown
	}
	return time.Since(f.started).Milliseconds()
}

// observe is called after each round.
func (f *family) observe(rounds uint64, t round.Trainer) error {
	f.rounds = rounds
	f.tell(t.Progress)
	if f.curve != nil {
		f.curve.Follow(t, f.millis())
	}
	if f.o.Checkpoint == nil || time.Since(f.saved) < cmp.Or(f.o.CheckpointEvery, checkpointEvery) {
		return nil
	}
	return f.save()
}

// save hands on the state.
func (f *family) save() (err error) {
	if f.state, err = f.trainer.AppendState(f.state[:0]); err != nil {
		return err
	}
	at := Checkpoint{Rounds: f.rounds, State: f.state}
	if f.curve != nil {
		at.Curve = f.curve.Curve().Append(nil)
	}
	f.o.Checkpoint(at)
	f.saved = time.Now()
	return nil
}

// asked reports whether anybody wants to hear how far the job is.
func (f *family) asked() bool { return f.o.Progress != nil || f.o.Report != nil }

func (f *family) tell(progress func() round.Progress) {
	if !f.asked() {
		return
	}
	now := time.Now()
	if f.o.Progress != nil && now.Sub(f.shown) >= showEvery {
		f.shown = now
		f.o.Progress(progress())
	}
	if f.o.Report != nil && now.Sub(f.reported) >= reportEvery {
		f.reported = now
		f.o.Report(f.rounds, progress())
	}
}

// end tells of the end of the job. A job that stopped early has done all its steps.
func (f *family) end() {
	p := f.trainer.Progress()
	p.Steps = p.Step
	if f.o.Progress != nil {
		f.o.Progress(p)
	}
	if f.o.Report != nil {
		f.o.Report(f.rounds, p)
	}
}

// Do implements engine.Executor.
func (f *family) Do(ctx context.Context, n uint64, r *round.Round, res *round.Result) error {
	f.subJobs = nil
	how := r.Gather()
	if how != nil && how.SubJob != nil { // each task has one child, for all who ask
		for u := range r.Tasks {
			f.subJobs = append(f.subJobs, how.SubJob(u))
		}
		of, same := *r, *how
		same.SubJob = round.Jobs(f.subJobs...)
		of.How, r = &same, &of
	}
	if f.most = max(f.most, len(f.subJobs)); how != nil {
		f.tasks, f.began = make([]round.TaskProgress, r.Tasks), time.Now()
		for u := range f.tasks {
			f.tasks[u].Loss = -1
			f.tasks[u].Done = how.Skips(u)
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
	k, ok := f.trainer.(round.ResultTaker)
	if f.o.Checkpoint == nil || !ok {
		return part, nil
	}
	f.mu.Lock() // a job that goes on elsewhere does not run this sub-job again
	defer f.mu.Unlock()
	if err := k.TakeResult(unit, part); err != nil {
		return part, err
	}
	return part, f.save()
}

// result notes how far a task without a sub-job is by its result. What is wrong with the result, Fold says.
func (f *family) result(task int, result []byte) {
	g, ok := f.trainer.(round.TaskReporter)
	if !ok || f.subJobs != nil || !f.asked() {
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
		f.tell(func() round.Progress { return g.RoundProgress(f.tasks) })
	}
}
