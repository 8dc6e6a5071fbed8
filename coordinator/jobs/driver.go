package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/dispatch"
	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
)

// driver runs one job on the leader.
type driver struct {
	m        *Manager
	job      *state.Job
	log      *slog.Logger
	trainer  pipeline.Finisher
	commits  *committer
	curve    *curve.Recorder
	ran      time.Duration // before this driver, without pauses, by the clocks of others
	began    time.Time
	samples  uint64 // as last counted
	steps    uint64
	spent    engine.RoundTimes
	driven   time.Time // since when rounds are measured
	gauges   *gauges
	given    *dispatch.Executor
	gathered bool // true if a gather round has told its progress
	large    bool // its state may be too large for the log
}

func (d *driver) run(ctx context.Context) error {
	if err := d.markRunning(ctx); err != nil {
		return err
	}
	defer d.prepare()()
	if err := d.restore(ctx); err != nil {
		return err
	}
	d.gauges = newGauges(d.m.cfg.Metrics, d.job.Name)
	d.gauges.set(d.trainer.Progress(), time.Now())
	options := dispatch.ExecutorOptions{AuditPPM: d.job.AuditPPM, Budget: budgetOf(d.m.cfg.Store, d.job)}
	reporter, _ := d.trainer.(round.UnitReporter)
	options.Progress = dispatch.ProgressOptions{Reporter: reporter, Count: d.add, Show: d.show}
	d.given = d.m.cfg.Dispatch.Executor(d.job.ID, d.job.Job, d.job.Manifest, options)
	defer d.given.Close()
	d.commits = newCommitter(d)
	defer d.commits.stop()
	d.driven = time.Now()
	x := d.spent.Measure(d.given, false)
	err := engine.Drive(ctx, d.trainer, d.job.Round, x, func(rounds uint64, t round.Trainer) error {
		d.count(t.Progress())
		d.follow(t)
		if d.job.Job.Cells != nil { // its one round has ended: the state would be all results once more
			return nil
		}
		return d.commits.offer(ctx, rounds, t)
	})
	if err != nil {
		return err
	}
	return d.finish(ctx) // it needs no commit before it
}

func (d *driver) markRunning(ctx context.Context) error {
	if d.job.State == protocol.Running {
		return nil
	}
	now := time.Now()
	entry := protocol.JobStateEntry{Epoch: d.m.cfg.Epoch, Job: d.job.ID, State: protocol.Running, Time: now.Unix(), Millis: protocol.Millis(now)}
	_, _, err := d.m.cfg.Store.Propose(ctx, protocol.EncodeEntry(protocol.EntryJobState, entry))
	return err
}

// restore makes the trainer from the committed state.
func (d *driver) restore(ctx context.Context) error {
	committed := d.job.Trainer
	if d.job.TrainerBlob != "" {
		b, err := d.m.cfg.Blobs.Get(ctx, d.job.TrainerBlob)
		if err != nil {
			return fmt.Errorf("the training state cannot be read: %w", err)
		}
		committed = b
	}
	job, err := d.withWeights(ctx)
	if err != nil {
		return err
	}
	t, err := pipeline.New(job, d.job.Manifest, committed)
	if err != nil {
		return err
	}
	d.trainer = t
	p := t.Progress()
	d.steps, d.samples = p.Step, p.Samples
	d.restoreCurve()
	d.log.Info("the job runs", "round", d.job.Round, "step", p.Step, "epoch", d.m.cfg.Epoch)
	return nil
}

// withWeights returns the job with the weights that it begins from. Folds get them on workers.
func (d *driver) withWeights(ctx context.Context) (*round.Job, error) {
	job := d.job.Job
	if job.Weights == "" || !d.single() {
		return job, nil
	}
	b, err := d.m.cfg.Blobs.Get(ctx, job.Weights)
	if err != nil {
		return nil, fmt.Errorf("the weights to start from cannot be read: %w", err)
	}
	return job.WithWeights(b)
}

// restoreCurve goes on with the committed learning curve.
func (d *driver) restoreCurve() {
	var committed *curve.Curve
	if len(d.job.Curve) > 0 {
		c, err := curve.Decode(d.job.Curve)
		if err != nil {
			d.log.Warn("the committed learning curve cannot be read; a new one begins", "error", err)
		} else {
			committed = c
		}
	}
	d.curve = curve.NewRecorder(curve.JobPoints, committed)
	if d.single() {
		d.curve.Observe(d.trainer.Progress(), d.time().Milliseconds())
	}
}

// single reports whether the job trains one model of its own.
func (d *driver) single() bool { return d.job.Job.Folds == 0 && d.job.Job.Cells == nil }

// follow records the losses after a round. A job of folds has none of its own: its folds
// have theirs.
func (d *driver) follow(t round.Trainer) {
	if d.single() {
		d.curve.Follow(t, d.time().Milliseconds())
	}
}

// count moves the metrics of the job on after a round. The steps of a collected round
// were counted when its units came.
func (d *driver) count(p round.Progress) {
	done := protocol.Work{Rounds: 1}
	if d.given.Gathered() {
		d.gathered = true
	} else {
		done.Steps, done.Samples = p.Step-min(p.Step, d.steps), p.Samples-min(p.Samples, d.samples)
	}
	d.add(done)
	if d.gathered {
		d.show(0, p)
	} else {
		d.gauges.set(p, time.Now())
	}
	d.steps, d.samples = max(d.steps, p.Step), max(d.samples, p.Samples)
}

// show makes known how far a gather round of so many tasks is, or, if 0, how far the job is.
func (d *driver) show(tasks int, p round.Progress) {
	d.gauges.set(p, time.Now())
	d.given.Show(tasks, presentable(p))
}

// add adds to the counters of all jobs.
func (d *driver) add(done protocol.Work) {
	x := d.m.cfg.Metrics
	x.Rounds.Add(float64(done.Rounds))
	x.Steps.Add(float64(done.Steps))
	x.Samples.Add(float64(done.Samples))
}

// finish stores the models and predictions on a majority and commits the result.
func (d *driver) finish(ctx context.Context) error {
	if d.large {
		runtime.GC() // what is left of the evaluation makes room for the model's file
	}
	outcome, err := d.trainer.Outcome()
	if err != nil {
		return err
	}
	models, err := d.storeModels(ctx, outcome)
	if err != nil {
		return err
	}
	var cells []protocol.CellsRef
	if d.job.Job.Cells != nil {
		took := d.times(outcome)
		if cells, models, err = d.storeCells(ctx, outcome, took); err != nil {
			return err
		}
		outcome.CellsSpent = spentBy(d.job.Job.Cells, took)
	}
	predicted, err := d.storePredictions(ctx, outcome.Predictions)
	if err != nil {
		return err
	}
	outcome.SetSpent(d.spent.Seconds(), time.Since(d.driven).Seconds())
	body, err := json.Marshal(outcome)
	if err != nil {
		return fmt.Errorf("the job's result could not be stored: %w", err)
	}
	d.curve.End()
	rest, _ := d.curve.Uncommitted() // of what is known to be committed: a commit may be under way
	now := time.Now()
	entry := protocol.FinishEntry{
		Epoch: d.m.cfg.Epoch, Job: d.job.ID, Outcome: body, Models: models, Predictions: predicted, Cells: cells, Progress: progressJSON(d.trainer.Progress()),
		Curve: rest.Checked(), FoldCurves: foldCurves(outcome), Seconds: d.time().Seconds(), Time: now.Unix(), Millis: protocol.Millis(now),
	}
	_, _, err = d.m.cfg.Store.Propose(ctx, protocol.EncodeEntry(protocol.EntryFinish, entry))
	return err
}

// ranBefore is how long a job ran before now, for display, without its pauses; where
// another leader runs it, by the clocks of both.
func ranBefore(j *state.Job, now time.Time) time.Duration {
	millis := j.Ran
	if j.State == protocol.Running && j.Since > 0 {
		millis += max(0, now.UnixMilli()-j.Since)
	}
	return time.Duration(millis) * time.Millisecond
}

// time is how long the job has run.
func (d *driver) time() time.Duration { return d.ran + time.Since(d.began) }

// maxFoldPoints bounds the points of all folds' curves together, which one log entry has:
// of very many folds each has fewer than curve.FoldPoints.
const maxFoldPoints = 1 << 16

// foldCurves lists the encoded curves of an outcome's folds.
func foldCurves(o *pipeline.Outcome) (list [][]byte) {
	for _, f := range o.Folds {
		c := f.Curve
		if len(o.Folds)*curve.FoldPoints > maxFoldPoints && c != nil {
			c = c.Coarsened(max(4, maxFoldPoints/len(o.Folds)))
		}
		if c == nil {
			c = curve.New()
		}
		list = append(list, c.Checked())
	}
	return list
}

func (d *driver) storeModels(ctx context.Context, o *pipeline.Outcome) ([]protocol.ModelRef, error) {
	outcomes := o.Folds
	if d.job.Job.Cells != nil {
		return nil, nil // storeCells does
	}
	if len(outcomes) == 0 {
		outcomes = []*pipeline.Outcome{o}
	}
	var refs []protocol.ModelRef
	for _, o := range outcomes {
		blob, err := d.m.cfg.Blobs.Put(ctx, o.Model)
		if err != nil {
			return nil, fmt.Errorf("the model could not be stored: %w", err)
		}
		refs = append(refs, protocol.ModelRef{Digest: o.ModelDigest, Blob: blob, Bytes: uint64(len(o.Model))})
	}
	return refs, nil
}

// storePredictions stores those of held-out rows, where there are any.
func (d *driver) storePredictions(ctx context.Context, b []byte) (*protocol.BlobRef, error) {
	if len(b) == 0 {
		return nil, nil
	}
	blob, err := d.m.cfg.Blobs.Put(ctx, b)
	if err != nil {
		return nil, fmt.Errorf("the predictions could not be stored: %w", err)
	}
	return &protocol.BlobRef{Blob: blob, Bytes: uint64(len(b))}, nil
}
