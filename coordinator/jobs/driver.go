package jobs

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/coppice-ldl/coppice/coordinator/dispatch"
	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/job/spec"
	"github.com/coppice-ldl/coppice/metrics"
	"github.com/coppice-ldl/coppice/protocol"
)

// driver runs one job on the leader.
type driver struct {
	m        *Manager
	job      *state.Job
	log      *slog.Logger
	trainer  pipeline.Finisher
	executor *dispatch.Executor
	commits  *committer
	curve    *curve.Recorder
	gauges   *gauges
	large    bool // true if the state may be too large for the log

	began  time.Time
	ran    time.Duration // before this driver, without pauses, by the clocks of other leaders
	driven time.Time     // since when rounds are measured
	spent  engine.RoundTimes

	steps, samples uint64 // as last counted
	gathered       bool   // true if a gather round has told its progress
}

// leanFrom is the size of messages from which on a job is run with little garbage.
const leanFrom = 16 << 20

func (d *driver) run(ctx context.Context) error {
	if d.job.State != protocol.Running {
		now := time.Now()
		entry := protocol.JobStateEntry{Epoch: d.m.cfg.Epoch, Job: d.job.ID, State: protocol.Running, Time: now.Unix(), Millis: protocol.Millis(now)}
		if _, _, err := d.m.cfg.Store.Propose(ctx, protocol.EncodeEntry(protocol.EntryJobState, entry)); err != nil {
			return err
		}
	}
	// The estimate may err: a state that is said to be small is committed from memory, even if it is large.
	need, err := spec.Estimate(d.job.Job, d.job.Manifest)
	d.large = err == nil && need.State > blobFrom
	if err == nil && need.Message >= leanFrom && d.m.cfg.Lean != nil {
		defer d.m.cfg.Lean()()
	}
	if err := d.restore(ctx); err != nil {
		return err
	}
	d.gauges = newGauges(d.m.cfg.Metrics, d.job.Name)
	d.gauges.set(d.trainer.Progress(), time.Now())
	options := dispatch.ExecutorOptions{AuditPPM: d.job.AuditPPM, Budget: budgetOf(d.m.cfg.Store, d.job)}
	reporter, _ := d.trainer.(round.TaskReporter)
	options.Progress = dispatch.ProgressOptions{Reporter: reporter, Count: d.add, Show: d.show}
	d.executor = d.m.cfg.Dispatch.Executor(d.job.ID, d.job.Job, d.job.Manifest, options)
	defer d.executor.Close()
	d.commits = newCommitter(d)
	defer func() { _ = d.commits.settle() }() // whatever comes of it
	d.driven = time.Now()
	x := d.spent.Measure(d.executor, false)
	err = engine.Drive(ctx, d.trainer, d.job.Round, x, func(rounds uint64, t round.Trainer) error {
		d.count(t.Progress())
		if d.isSingle() { // folds and runs have curves of their own
			d.curve.Follow(t, d.time().Milliseconds())
		}
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

// guarded is run with a panic of the job's trainer turned into the job's failure; otherwise one bad job would end every
// coordinator that comes to lead.
func (d *driver) guarded(ctx context.Context) (err error) {
	defer func() {
		if stack := engine.PanicStack(err); stack != "" {
			d.log.Error("a job's algorithm panicked", "reason", err, "stack", stack)
		}
	}()
	defer engine.Guard(&err, "the algorithm")
	return d.run(ctx)
}

// restore makes the trainer from the committed state, and goes on with the committed learning curve.
func (d *driver) restore(ctx context.Context) (err error) {
	committed, job := d.job.Trainer, d.job.Job
	if d.job.TrainerBlob != "" {
		if committed, err = d.m.cfg.Blobs.Get(ctx, d.job.TrainerBlob); err != nil {
			return fmt.Errorf("the training state cannot be read: %w", err)
		}
	}
	if job.Weights != "" && d.isSingle() { // workers fetch the weights of folds
		b, err := d.m.cfg.Blobs.Get(ctx, job.Weights)
		if err != nil {
			return fmt.Errorf("the weights to start from cannot be read: %w", err)
		}
		if job, err = job.WithWeights(b); err != nil {
			return err
		}
	}
	if d.trainer, err = pipeline.New(job, d.job.Manifest, committed); err != nil {
		return err
	}
	var known *curve.Curve
	if len(d.job.Curve) > 0 {
		if known, err = curve.Decode(d.job.Curve); err != nil {
			d.log.Warn("the committed learning curve cannot be read; a new one begins", "error", err)
			known = nil
		}
	}
	p := d.trainer.Progress()
	d.steps, d.samples = p.Step, p.Samples
	d.curve = curve.NewRecorder(curve.JobPoints, known)
	if d.isSingle() {
		d.curve.Observe(p, d.time().Milliseconds())
	}
	d.log.Info("the job runs", "round", d.job.Round, "step", p.Step, "epoch", d.m.cfg.Epoch)
	return nil
}

// isSingle reports whether the job trains one model of its own.
func (d *driver) isSingle() bool { return d.job.Job.Folds == 0 && d.job.Job.Cells == nil }

// count updates the metrics of the job after a round. The steps of a gather round were counted as its results came.
func (d *driver) count(p round.Progress) {
	done := protocol.Work{Rounds: 1}
	if d.executor.Gathered() {
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
	d.executor.Show(tasks, presentable(p))
}

// add adds to the counters of all jobs.
func (d *driver) add(done protocol.Work) {
	x := d.m.cfg.Metrics
	x.Rounds.Add(float64(done.Rounds))
	x.Steps.Add(float64(done.Steps))
	x.Samples.Add(float64(done.Samples))
}

// ranBefore returns how long a job ran before now, without its pauses, for display. If another leader ran it, the clocks of both
// leaders count.
func ranBefore(j *state.Job, now time.Time) time.Duration {
	millis := j.Ran
	if j.State == protocol.Running && j.Since > 0 {
		millis += max(0, now.UnixMilli()-j.Since)
	}
	return time.Duration(millis) * time.Millisecond
}

// time returns how long the job has run.
func (d *driver) time() time.Duration { return d.ran + time.Since(d.began) }

// gauges are the series of one running job. They do not exist before and after.
type gauges struct {
	all  *metrics.Coordinator
	name string

	steps, moved   prometheus.Gauge
	progress, loss prometheus.Gauge // nil until it is known
}

func newGauges(all *metrics.Coordinator, name string) *gauges {
	return &gauges{all: all, name: name, steps: all.JobSteps.WithLabelValues(name), moved: all.Moved.WithLabelValues(name)}
}

// set shows how far the job is, and that it has just moved.
func (g *gauges) set(p round.Progress, now time.Time) {
	g.steps.Set(float64(p.Step))
	g.moved.Set(float64(now.UnixMilli()) / 1000)
	if p.Steps > 0 {
		if g.progress == nil {
			g.progress = g.all.Progress.WithLabelValues(g.name)
		}
		g.progress.Set(min(1, float64(p.Step)/float64(p.Steps)))
	}
	if p = presentable(p); p.Loss >= 0 {
		if g.loss == nil {
			g.loss = g.all.Loss.WithLabelValues(g.name)
		}
		g.loss.Set(p.Loss)
	}
}
