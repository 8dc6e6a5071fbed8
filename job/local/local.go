// Package local runs whole jobs in this process, without NATS and Raft: the
// oracle that every cluster is held against. A worker runs sub-jobs by it too.
package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
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
