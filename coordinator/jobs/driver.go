package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/coppice-ldl/coppice/coordinator/dispatch"
	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/outcome/childjob"
	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/engine/schedule"
	"github.com/coppice-ldl/coppice/internal/blobs"
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
	round, step    uint64 // as last known
}

// leanFrom is the size of messages from which on a job is run with little garbage.
const leanFrom = 16 << 20

func (d *driver) run(ctx context.Context) error {
	if d.job.State != protocol.Running {
		now := time.Now()
		entry := protocol.JobStateEntry{Epoch: d.m.cfg.Epoch, Job: d.job.ID, State: protocol.Running, Time: now.Unix(),
			Millis: protocol.Millis(now), Events: d.m.cfg.Journal.Take(d.job.ID, false)}
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
	options := dispatch.ExecutorOptions{AuditPPM: d.job.AuditPPM, Budget: budgetOf(d.m.cfg.Store, d.job), Fault: d.fault}
	reporter, _ := d.trainer.(round.TaskReporter)
	options.Progress = dispatch.ProgressOptions{Reporter: reporter, Count: d.add, Show: d.show}
	d.executor = d.m.cfg.Dispatch.Executor(d.job.ID, d.job.Job, d.job.Manifest, options)
	defer d.executor.Close()
	d.commits = newCommitter(d)
	defer func() { _ = d.commits.settle() }() // whatever comes of it
	d.driven = time.Now()
	x := d.spent.Measure(d.executor, false)
	err = engine.Drive(ctx, d.trainer, d.job.Round, x, func(rounds uint64, t round.Trainer) error {
		d.round = rounds
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
	d.steps, d.samples, d.round, d.step = p.Step, p.Samples, d.job.Round, p.Step
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
	d.step = p.Step
	if d.gathered {
		d.show(0, p)
	} else {
		d.gauges.set(p, time.Now())
	}
	d.steps, d.samples = max(d.steps, p.Step), max(d.samples, p.Samples)
}

// show makes known how far a gather round of so many tasks is, or, if 0, how far the job is.
func (d *driver) show(tasks int, p round.Progress) {
	d.step = p.Step
	d.gauges.set(p, time.Now())
	d.executor.Show(tasks, presentable(p))
}

// fault notes that something went wrong where the job is now.
func (d *driver) fault(f dispatch.Fault) {
	now := time.Now()
	d.m.cfg.Journal.Note(d.job.ID, f, protocol.JobEvent{Time: protocol.Seconds(now.UnixMilli()), Round: d.round,
		Step: d.step, Seconds: protocol.Seconds(d.time().Milliseconds())})
}

// add adds to the counters of all jobs.
func (d *driver) add(done protocol.Work) {
	x := d.m.cfg.Metrics
	x.Rounds.Add(float64(done.Rounds))
	x.Steps.Add(float64(done.Steps))
	x.Samples.Add(float64(done.Samples))
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

const (
	// maxFoldPoints bounds the points of all folds' curves together, which one log entry has. Very many folds have fewer
	// than curve.FoldPoints each.
	maxFoldPoints = 1 << 16
	// maxBlobRuns and maxBlobBytes bound a blob of runs: a request reads one blob, and runs may have models.
	maxBlobRuns  = protocol.CellsPage
	maxBlobBytes = 64 << 20
)

// finish stores the models and predictions on a quorum and commits the outcome.
func (d *driver) finish(ctx context.Context) error {
	if d.large {
		runtime.GC() // the memory of the evaluation makes room for the model's file
	}
	o, err := d.trainer.Outcome()
	if err != nil {
		return err
	}
	e := protocol.FinishEntry{Epoch: d.m.cfg.Epoch, Job: d.job.ID, Progress: progressJSON(d.trainer.Progress())}
	for _, f := range o.Folds {
		c := f.Curve
		if len(o.Folds)*curve.FoldPoints > maxFoldPoints && c != nil {
			c = c.Coarsened(max(4, maxFoldPoints/len(o.Folds)))
		}
		if c == nil {
			c = curve.New()
		}
		e.FoldCurves = append(e.FoldCurves, c.Checked())
	}
	if d.job.Job.Cells != nil {
		took := recordedTimes(d.m.cfg.Store.State().Job(d.job.ID), o.CellCount)
		for run := range o.CellEnds { // as workers said to this leader
			if ns := o.CellEnds[run].Took; ns > 0 {
				took[run] = ns
			}
		}
		if e.Cells, e.Models, err = d.storeRuns(ctx, o, took); err != nil {
			return err
		}
		o.CellsSpent, e.Methods = spentBy(d.job.Job.Cells, took), timesBy(d.job.Job.Cells, took, o.CellEnds)
	} else {
		of := o.Folds
		if len(of) == 0 {
			of = []*pipeline.Outcome{o}
		}
		for _, o := range of {
			model, err := d.storeModel(ctx, o.Model, o.ModelDigest)
			if err != nil {
				return err
			}
			e.Models = append(e.Models, *model)
		}
	}
	if b := o.Predictions; len(b) > 0 {
		blob, err := d.m.cfg.Blobs.Put(ctx, b)
		if err != nil {
			return fmt.Errorf("the predictions could not be stored: %w", err)
		}
		e.Predictions = &protocol.BlobRef{Blob: blob, Bytes: uint64(len(b))}
	}
	o.SetSpent(d.spent.Seconds(), time.Since(d.driven).Seconds())
	if e.Outcome, err = json.Marshal(o); err != nil {
		return fmt.Errorf("the job's result could not be stored: %w", err)
	}
	d.curve.End()
	rest, _ := d.curve.Uncommitted() // a commit may be in flight: what it has is sent again
	e.Curve = rest.Checked()
	now := time.Now()
	e.Seconds, e.Time, e.Millis = d.time().Seconds(), now.Unix(), protocol.Millis(now)
	e.Events = d.m.cfg.Journal.Take(d.job.ID, true)
	_, _, err = d.m.cfg.Store.Propose(ctx, protocol.EncodeEntry(protocol.EntryFinish, e))
	return err
}

func (d *driver) storeModel(ctx context.Context, model []byte, digest string) (*protocol.ModelRef, error) {
	blob, err := d.m.cfg.Blobs.Put(ctx, model)
	if err != nil {
		return nil, fmt.Errorf("the model could not be stored: %w", err)
	}
	return &protocol.ModelRef{Digest: digest, Blob: blob, Bytes: uint64(len(model))}, nil
}

// storeRuns stores the outcomes of a job's runs, several in each blob, and the models of runs that the job keeps. took
// has the nanoseconds of computing, by run.
func (d *driver) storeRuns(ctx context.Context, o *pipeline.Outcome, took []uint64) (refs []protocol.CellsRef,
	models []protocol.ModelRef, err error) {
	var w *blobs.Writer // of the next blob
	defer func() {
		if w != nil {
			w.Close()
		}
	}()
	count, buf := 0, []byte(nil) // the runs of the next blob
	store := func(end int) error {
		buf = childjob.AppendCells(buf[:0], nil, took[end-count:end])
		_, err := w.Write(buf)
		ref := protocol.CellsRef{BlobRef: protocol.BlobRef{Bytes: uint64(w.Size())}, Count: count}
		if err == nil {
			ref.Blob, err = w.Commit("")
		}
		if err == nil {
			err = d.m.cfg.Blobs.Spread(ctx, ref.Blob, ref.Bytes)
		}
		if err != nil {
			return fmt.Errorf("the results of runs could not be stored: %w", err)
		}
		w.Close()
		refs, w, count = append(refs, ref), nil, 0
		return nil
	}
	for run := range o.CellCount {
		part, model, err := d.runOutcome(ctx, o, run)
		if err != nil {
			return nil, nil, fmt.Errorf("run %d: %w", run, err)
		}
		if model != nil {
			models = append(models, *model)
		}
		if count == maxBlobRuns || count > 0 && w.Size()+int64(len(part)) > maxBlobBytes {
			if err := store(run); err != nil {
				return nil, nil, err
			}
		}
		if w == nil {
			if w, err = d.m.cfg.Blobs.Writer(); err != nil {
				return nil, nil, err
			}
		}
		buf = childjob.AppendList(buf[:0], [][]byte{part})
		if _, err := w.Write(buf); err != nil {
			return nil, nil, fmt.Errorf("the results of runs could not be stored: %w", err)
		}
		count++
	}
	if count > 0 {
		err = store(o.CellCount)
	}
	return refs, models, err
}

// runOutcome returns the encoded outcome of a run, empty if it was not run. If the job keeps models, the model is
// stored apart.
func (d *driver) runOutcome(ctx context.Context, o *pipeline.Outcome, run int) (part []byte, model *protocol.ModelRef,
	err error) {
	if part, err = o.Cell(run); err != nil || len(part) == 0 || !d.job.Job.Cells.Models {
		return part, nil, err
	}
	c, err := childjob.Decode(part)
	if err != nil || len(c.Model) == 0 {
		return part, nil, err
	}
	of, err := pipeline.EndingOf(c)
	if err != nil {
		return nil, nil, err
	}
	if model, err = d.storeModel(ctx, c.Model, of.ModelDigest); err != nil {
		return nil, nil, err
	}
	c.Model = nil
	return c.Encode(), model, nil
}

// budgetOf returns the part of a job in the budgets of its submission, by what the log says; nil: the job has no
// budgets.
func budgetOf(store Log, j *state.Job) *dispatch.BudgetOptions {
	c := j.Job.Cells
	if c == nil || len(c.Budgets) == 0 {
		return nil
	}
	o := &dispatch.BudgetOptions{
		Key:       j.Experiment + "/" + j.Submission(),
		Share:     schedule.ShareOptions{Limits: make(map[string]float64), Before: spentOf(j)},
		Elsewhere: func(open func(uint64) bool) map[string]float64 { return spentElsewhere(store.State(), j, open) },
	}
	for _, b := range c.Budgets {
		o.Share.Limits[b.Of] = b.Seconds
	}
	for i := range c.Rows {
		row := schedule.Row{Ended: c.Rows[i].Ended, Seconds: c.Rows[i].EndedSeconds}
		if b := c.Rows[i].Budget; b > 0 {
			row.Budget = c.Budgets[b-1].Of
		}
		o.Share.Rows = append(o.Share.Rows, row)
	}
	return o
}

// spentElsewhere returns the seconds, by budget, that a submission has spent before it and in its jobs for which open
// is false; one of its jobs is given.
func spentElsewhere(s *state.State, one *state.Job, open func(job uint64) bool) map[string]float64 {
	spent, counted := make(map[string]float64), make(map[string]bool)
	for _, j := range s.Jobs() {
		if j.Experiment != one.Experiment || j.Submission() != one.Submission() || j.Job.Cells == nil {
			continue
		}
		for _, b := range j.Job.Cells.Budgets {
			if !counted[b.Of] { // each job of the submission says the same
				counted[b.Of] = true
				spent[b.Of] += b.Spent
			}
		}
		if !open(j.ID) {
			for name, seconds := range spentOf(j) {
				spent[name] += seconds
			}
		}
	}
	return spent
}

// spentOf returns the seconds that the log has of the runs of a job, by budget.
func spentOf(j *state.Job) map[string]float64 {
	if j.State == protocol.Done {
		return j.CellsSpent()
	}
	return spentBy(j.Job.Cells, recordedTimes(j, j.Job.Cells.Count()))
}

// recordedTimes returns the nanoseconds of computing of the recorded runs of a job, by run. j may be nil.
func recordedTimes(j *state.Job, runs int) []uint64 {
	took := make([]uint64, runs)
	if j == nil {
		return took
	}
	for p := range j.RecordedFrom(j.Round+1, 0) {
		if int(p.Task) < len(took) {
			took[p.Task] = p.Compute
		}
	}
	return took
}

// spentBy returns the seconds of runs by the name of their budget; took has nanoseconds, by run. nil: there are no
// budgets.
func spentBy(c *round.Cells, took []uint64) map[string]float64 {
	if len(c.Budgets) == 0 {
		return nil
	}
	spent := make(map[string]float64)
	for run, cell := range c.All() {
		if b := c.Rows[cell.Row].Budget; b > 0 && took[run] > 0 {
			spent[c.Budgets[b-1].Of] += float64(took[run]) / 1e9
		}
	}
	return spent
}

// timesBy adds up how long the runs of each method that ended well were computed. took has nanoseconds, by run; 0: not
// known.
func timesBy(c *round.Cells, took []uint64, ends []pipeline.CellEnd) []protocol.RunTimes {
	times := make([]protocol.RunTimes, len(c.Rows))
	for run, cell := range c.All() {
		if ends[run].Well && took[run] > 0 {
			of := &times[cell.Row]
			of.Runs, of.Nanoseconds = of.Runs+1, of.Nanoseconds+took[run]
		}
	}
	return times
}
