package jobcmd

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/connect"
	"github.com/coppice-ldl/coppice/cmd/progress"
	"github.com/coppice-ldl/coppice/cmd/results"
	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/engine/outcome/predictions"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/job/predict"
	"github.com/coppice-ldl/coppice/job/remaining"
	"github.com/coppice-ldl/coppice/protocol"
)

// jobRow returns a job as a row of the list. A done job has its K-L divergence among the measures. Other jobs show
// their last training loss.
func jobRow(j *protocol.JobInfo, now time.Time) []string {
	step, kl, algorithm := "-", "-", "-"
	if j.Progress != nil {
		step = units.Count(j.Progress.Step)
	}
	if v, ok := j.Measures["kl"]; ok {
		kl = cli.Measure(v) + " " + strings.TrimSuffix(j.EvaluatedOn, " samples")
	} else if j.Progress != nil && j.Progress.Loss >= 0 {
		kl = cli.Measure(j.Progress.Loss) + " training"
	}
	if j.Job != nil {
		algorithm = j.Job.Algorithm
	}
	seconds := secondsOf(j, now)
	return []string{fmt.Sprint(j.ID), j.Name, stateOf(j), percent(j), step, kl, seconds.taken, seconds.left, algorithm,
		j.Dataset, cli.Time(j.Submitted)}
}

// stateOf writes the state of a job, what it waits for, and whether its result may be wrong.
func stateOf(j *protocol.JobInfo) string {
	text := string(j.State)
	if j.WaitingFor != "" {
		text += ", " + j.WaitingFor.Short()
	}
	if j.Suspect != "" {
		text += ", suspect"
	}
	return text
}

// times are how long a job has run and how long it will still run, as text.
type times struct{ taken, left string }

// secondsOf returns the times of a job. For a running job they are estimates by the clock of this machine.
func secondsOf(j *protocol.JobInfo, now time.Time) times {
	t := times{"-", "-"}
	seconds := remaining.Ran(j, now)
	if j.Started != 0 {
		t.taken = units.Duration(seconds)
	}
	if e := remaining.Of(j, nil, seconds); e != nil && j.WaitingFor == "" {
		t.left = e.Text()
	}
	return t
}

// percent writes how much of a job is done: by its steps, or else by its gathered tasks.
func percent(j *protocol.JobInfo) string {
	switch {
	case j.State == protocol.Done:
		return "100 %"
	case j.Progress != nil && j.Progress.Steps > 0:
		return fmt.Sprintf("%.0f %%", 100*float64(j.Progress.Step)/float64(j.Progress.Steps))
	case j.Tasks > 0:
		return fmt.Sprintf("%.0f %%", 100*float64(j.Gathered)/float64(j.Tasks))
	}
	return "-"
}

type showCmd struct{ jobArg }

// Run implements `coppice job show`.
func (c *showCmd) Run(a *cli.App) error {
	cl, err := c.Connect(a)
	if err != nil {
		return err
	}
	j, err := cl.Jobs().Get(a.Ctx, c.Job)
	if err != nil {
		return err
	}
	line, err := cl.Jobs().Curve(a.Ctx, c.Job)
	if err != nil {
		return err
	}
	s := &shownJob{JobInfo: j}
	if r, _, err := results.Finished(j); err == nil && j.Predictions != nil {
		s.Predictions = &shownPredictions{j.Predictions, r.HeldOut}
	}
	s.Estimate = remaining.Of(j, line.Points, remaining.Ran(j, time.Now()))
	return a.Print(s, func(w io.Writer) { writeJob(a, w, j, line) })
}

// shownJob is a job with the number of samples of its predictions and an estimate of its end.
type shownJob struct {
	*protocol.JobInfo
	Predictions *shownPredictions `json:"predictions,omitempty"` // instead of the predictions of JobInfo
	*remaining.Estimate
}

type shownPredictions struct {
	*protocol.BlobRef
	Rows int `json:"samples"`
}

// writeJob writes what is known of a job, and its result if it is done.
func writeJob(a *cli.App, w io.Writer, j *protocol.JobInfo, line *protocol.JobCurve) {
	lines := [][2]string{
		{"job", fmt.Sprint(j.ID)}, {"name", j.Name}, {"state", string(j.State)},
	}
	if j.Error != "" {
		lines = append(lines, [2]string{"error", j.Error})
	}
	if j.Owner != "" {
		lines = append(lines, [2]string{"owner", cli.Owner(j.Owner, j.Private)})
	}
	if j.Waiting != "" {
		lines = append(lines, [2]string{"waiting", j.Waiting})
	}
	if j.Suspect != "" {
		lines = append(lines, [2]string{"suspect", j.Suspect})
	}
	if j.AuditPPM > 0 {
		lines = append(lines, [2]string{"audit", fmt.Sprintf("%v of the tasks are computed twice", float64(j.AuditPPM)/1e6)})
	}
	lines = append(lines, [2]string{"submitted", cli.Time(j.Submitted)}, [2]string{"started", cli.Time(j.Started)},
		[2]string{"ended", cli.Time(j.Ended)})
	if j.Started != 0 && j.State != protocol.Done {
		lines = append(lines, [2]string{"time", units.Duration(remaining.Ran(j, time.Now()))})
	}
	if !j.State.Final() {
		lines = append(lines, [2]string{"done", percent(j)}, [2]string{"rounds committed", units.Count(j.Rounds)})
		lines = append(lines, runningLines(j, line.Points, time.Now())...)
		if len(j.Workers) > 0 {
			lines = append(lines, [2]string{"workers", cli.NameList(j.Workers)})
		}
	}
	for _, l := range lossLines(line.Points) {
		lines = append(lines, [2]string{l[0] + " curve", l[1]})
	}
	lines = append(lines, eventLines(j)...)
	if j.CellCount > 0 {
		cli.WritePairs(w, append(lines, cellLines(a, j)...))
		return
	}
	r, _, err := results.Finished(j)
	if err != nil {
		if j.Job != nil {
			lines = append(lines, [2]string{"algorithm", j.Job.Algorithm}, [2]string{"dataset", j.Dataset},
				[2]string{"seed", fmt.Sprint(j.Job.Seed)}, [2]string{"split", results.Split(j.Job, "")},
				[2]string{"settings", results.Settings(j.Job.Params)})
		}
		cli.WritePairs(w, lines)
		return
	}
	cli.WritePairs(w, lines)
	fmt.Fprintln(w)
	r.Advise(a, j)
	r.Text(w)
}

// maxEvents bounds the events that job show prints as text.
const maxEvents = 12

// eventLines lists the newest events of a job, and says how many others there were.
func eventLines(j *protocol.JobInfo) (lines [][2]string) {
	first := max(0, len(j.Events)-maxEvents)
	if others := uint64(first) + j.EventsDropped; others > 0 {
		text := units.Count(others)
		if first > 0 {
			text += "; -o json lists " + units.Count(first)
		}
		lines = append(lines, [2]string{"earlier events", text})
	}
	for _, e := range j.Events[first:] {
		lines = append(lines, [2]string{"event", fmt.Sprintf("%s, step %s: %s", cli.Time(int64(e.Time)),
			units.Count(e.Step), e.Text)})
	}
	return lines
}

type listCmd struct {
	State []string `placeholder:"STATES" help:"List only jobs in these states: queued, paused, running, done, failed, cancelled."`
	Mine  bool     `help:"List only jobs of the user who asks, by the certificate or the token of the command."`
	Sort  string   `default:"-submitted" placeholder:"KEY" help:"Order of the list: submitted, ended, name, state, algorithm, dataset, or a measure such as kl. A - before the word sorts in descending order, as in --sort=-ended. Jobs without the value come last."`
	Limit int      `default:"100" placeholder:"N" help:"List only the first N jobs. 0: all jobs."`
	After uint64   `placeholder:"JOB" help:"List only jobs that follow the job with this number in the order of the list, such as the last one of the list before."`

	Algorithm string `placeholder:"NAME" help:"List only jobs of this algorithm."`
	Dataset   string `placeholder:"NAME" help:"List only jobs on this dataset."`

	connect.ChooseFlags
	connect.ServerFlags
}

// Run implements `coppice job list`.
func (c *listCmd) Run(a *cli.App) error {
	q := protocol.JobQuery{Sort: c.Sort, Limit: c.Limit, After: c.After, Owner: c.Owner, Mine: c.Mine, Name: c.Name,
		Algorithm: c.Algorithm, Dataset: c.Dataset}
	if c.Mine && c.Owner != "" {
		return cli.Usagef("{owner} and {mine} exclude each other; leave one of them out")
	}
	var err error
	if q.Since, q.Until, err = c.Times(); err != nil {
		return err
	}
	if q.States, err = protocol.ParseJobStates(strings.Join(c.State, ",")); err != nil {
		return cli.Usagef("{state}: %w", err)
	}
	if c.Limit < 0 {
		return cli.Usagef("{limit=%d}: want 0 or more; 0 means all", c.Limit)
	}
	if err := q.Check(); err != nil {
		return cli.Usage(err)
	}
	cl, err := c.Connect(a)
	if err != nil {
		return err
	}
	list, err := cl.Jobs().List(a.Ctx, q)
	if err != nil {
		return err
	}
	jobs := list.Jobs
	if jobs == nil {
		jobs = []protocol.JobInfo{}
	}
	if list.Next != 0 {
		which := "the first"
		if c.After > 0 {
			which = "the next"
		}
		defer a.Note("%s %s of %s, sorted by %s; --after %d lists more, and --limit 0 lists all", which,
			units.Count(len(jobs)), units.Plural(list.Total, "job"), q.Sort, list.Next)
	}
	return a.Print(jobs, func(w io.Writer) {
		owner := func(j protocol.JobInfo) string { return cli.Owner(j.Owner, j.Private) }
		cli.WriteOwned(w, []string{"job", "name", "state", "done", "step", "K-L", "time", "ETA", "algorithm", "dataset",
			"submitted"}, jobs, owner, func(j protocol.JobInfo) []string {
			return jobRow(&j, time.Now())
		}, 1, 4, 5, 6, 7, 8)
	})
}

// runningLines describes the progress of a job that has not ended.
func runningLines(j *protocol.JobInfo, points []curve.Point, now time.Time) (lines [][2]string) {
	if p := j.Progress; p != nil {
		lines = append(lines, [2]string{"step", progress.Step(p)}, [2]string{"training loss", progress.LossOn(j.Job, p.Loss)})
		if p.ValidatedAt > 0 {
			lines = append(lines, [2]string{"validation loss", progress.LossOn(j.Job, p.Validation) + " at step " +
				units.Count(p.ValidatedAt)})
		}
		if p.BestStep > 0 {
			lines = append(lines, [2]string{"best so far", progress.LossOn(j.Job, p.BestLoss) + " at step " +
				units.Count(p.BestStep)})
		}
	}
	if j.State != protocol.Running {
		return lines
	}
	if e := remaining.Of(j, points, remaining.Ran(j, now)); e != nil {
		if e.Rate > 0 {
			rate := units.Count(uint64(e.Rate+0.5)) + " steps/s"
			if e.Rate < 1 {
				rate = units.Duration(1/e.Rate) + " a step"
			}
			lines = append(lines, [2]string{"rate", rate})
		}
		lines = append(lines, [2]string{"ETA", e.Text()})
	}
	return lines
}

// cellLines describes a job of an experiment.
func cellLines(a *cli.App, j *protocol.JobInfo) [][2]string {
	lines := [][2]string{{"experiment", j.Experiment}, {"dataset", j.Dataset}, {"runs", units.Count(j.CellCount)}}
	if r, o, err := results.Finished(j); err == nil {
		lines = append(lines, [2]string{"failed runs", units.Count(o.CellsFailed)}, [2]string{"digest", r.ModelDigest})
	}
	return append(lines, [2]string{"results", a.Command("experiment report " + j.Experiment)})
}

type predictionsCmd struct {
	Job string `arg:"" help:"Number or name of the job."`
	Out string `required:"" placeholder:"FILE" help:"File to write: .csv, .csv.gz or .npz; - for stdout."`

	Figures string `placeholder:"DIR" help:"Also draw figures to folder DIR, each as .svg, .png and .pdf: predicted and true distributions of some samples, the cumulative score of numeric labels, and the confusion matrix of classes."`

	cli.FormatFlag
	connect.ServerFlags
}

// Run implements `coppice job predictions`.
func (c *predictionsCmd) Run(a *cli.App) error {
	format, err := c.FormatOf(c.Out)
	if err = cmp.Or(err, results.CheckFigures("--figures", c.Figures)); err != nil {
		return err
	}
	cl, err := c.Connect(a)
	if err != nil {
		return err
	}
	j, err := cl.Jobs().Get(a.Ctx, c.Job)
	if err != nil {
		return err
	}
	if j.Experiment != "" {
		return errtext.Errorf(errtext.WrongRequest, "job %s is part of experiment %s, and experiments do not keep the "+
			"predictions for all held-out samples. With {record=predictions}, an experiment keeps predictions for 6 test "+
			"samples of each run "+
			"(%s). With {keep-models}, it keeps the model of each run for coppice predict (%s)", j.Name, j.Experiment,
			a.Command("experiment report "+j.Experiment+" -o json"),
			a.Command("model download "+j.Name+"/DIGEST --out FILE"))
	}
	r, o, err := results.Finished(j)
	if err != nil {
		return err
	}
	if j.Predictions == nil {
		return NoPredictions("job "+j.Name, o)
	}
	out, err := a.CreateOutput(c.Out)
	if err != nil {
		return err
	}
	out = cli.Compressed(out, format)
	defer out.Discard()
	b, err := cl.Blobs().Get(a.Ctx, j.Predictions.Blob)
	if err != nil {
		return client.Withheld(err, "job", j.Name, j.Ownership)
	}
	set, err := predictions.Decode(b)
	if err != nil {
		return err
	}
	if err := predict.WriteHeldOut(out, format, set); err != nil { // an incomplete file is discarded
		return err
	}
	if err := out.Commit(); err != nil {
		return err
	}
	o.Predictions = b
	if err := results.DrawResult(a, c.Figures, r, o); err != nil {
		return err
	}
	shown := struct {
		Job         string `json:"job"`
		ModelDigest string `json:"model_digest"`
		Rows        int    `json:"samples"`
		Out         string `json:"out"`
	}{j.Name, r.ModelDigest, len(set.Row), c.Out}
	return a.PrintBeside(c.Out, shown, func(w io.Writer) {
		fmt.Fprintf(w, "predictions for %s held out by job %s: %s\n", units.Plural(shown.Rows, "sample"), j.Name,
			cli.OutputName(c.Out))
	})
}

// NoPredictions says why a job has no predictions.
func NoPredictions(job string, o *pipeline.Outcome) error {
	if o.Rows.Test == 0 {
		return errtext.Errorf(errtext.WrongRequest, "%s held out no samples for testing: train with {test-fraction}, "+
			"{folds} or {split}", job)
	}
	return fmt.Errorf("%s kept no predictions: they are larger than its setting keep_predictions", job)
}
