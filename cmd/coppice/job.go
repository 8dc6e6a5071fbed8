package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/protocol"
)

type jobCmd struct {
	Submit submitCmd   `cmd:"" help:"Submit a job and return at once."`
	List   jobListCmd  `cmd:"" help:"List jobs."`
	Show   jobShowCmd  `cmd:"" help:"Describe a job."`
	Watch  jobWatchCmd `cmd:"" help:"Show a job's progress until it ends, then its result."`

	Curve       jobCurveCmd       `cmd:"" help:"Show a job's losses step by step, as text, CSV or JSON."`
	Predictions jobPredictionsCmd `cmd:"" help:"Write the predictions of a done job for the samples that it held out."`

	Pause  jobPauseCmd  `cmd:"" help:"Pause a job; its last checkpoint is kept."`
	Resume jobResumeCmd `cmd:"" help:"Resume a paused job from its last checkpoint."`
	Cancel jobCancelCmd `cmd:"" help:"Cancel a job; it will have no model."`
	Delete jobDeleteCmd `cmd:"" help:"Delete jobs that have ended, with their models."`
	Prune  jobPruneCmd  `cmd:"" help:"Delete jobs that ended before a certain time."`
}

type submitCmd struct {
	specFlags
	auditFlag

	changeFlags
	dataFlags
}

// Run implements `coppice job submit`.
func (c *submitCmd) Run(a *app) error {
	if c.Settings {
		return c.printSettings(a)
	}
	file, err := c.read()
	if err != nil {
		return err
	}
	if err := c.belongTo(c.Data); err != nil {
		return err
	}
	cl, err := c.connect(a)
	if err != nil {
		return err
	}
	defer cl.Close()
	job, err := submit(a, cl, &c.specFlags, &c.dataFlags, file, c.Audit, false)
	if err != nil {
		return err
	}
	return a.print(job, func(w io.Writer) {
		fmt.Fprintf(w, "job %s is %s; to watch it: coppice job watch %s\n", job.Name, job.State, job.Name)
	})
}

func jobRow(j *protocol.JobInfo, now time.Time) []any {
	seconds := secondsOf(j, now)
	return rowOf(fmt.Sprint(j.ID), j.Name, stateOf(j), percent(j), stepOf(j.Progress), klOf(j),
		seconds.taken, seconds.left, algorithmOf(j.Job), j.Dataset, clock(j.Submitted))
}

// stateOf writes a job's state, for what it waits, and whether its results may be wrong.
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

// times are how long a job has run, and how long it will at the most, for people.
type times struct{ taken, left string }

// secondsOf reads a job's times off; those of a running one are estimates by this
// machine's clock.
func secondsOf(j *protocol.JobInfo, now time.Time) times {
	t := times{"-", "-"}
	seconds := ranOf(j, now)
	if j.Started != 0 {
		t.taken = duration(seconds)
	}
	if e := estimateOf(j, nil, seconds); e != nil && j.WaitingFor == "" {
		t.left = e.text()
	}
	return t
}

// percent writes how far a job is: by its steps, or, of one that does not run and has none,
// by the units that are kept.
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

func stepOf(p *round.Progress) string {
	if p == nil {
		return "-"
	}
	return count(p.Step)
}

// klOf writes the K-L divergence of a job and of which rows it is: that of a done job's
// measures, or the last training loss.
func klOf(j *protocol.JobInfo) string {
	if kl, ok := j.Measures["kl"]; ok {
		return figure(kl) + " " + strings.TrimSuffix(j.EvaluatedOn, " samples")
	}
	if loss := lossOf(j.Progress); loss != "-" {
		return loss + " training"
	}
	return "-"
}

func lossOf(p *round.Progress) string {
	if p == nil || p.Loss < 0 {
		return "-"
	}
	return figure(p.Loss)
}

func algorithmOf(j *round.Job) string {
	if j == nil {
		return "-"
	}
	return j.Algorithm
}

// jobArg names one job.
type jobArg struct {
	Job string `arg:"" help:"Number or name of the job."`

	serverFlags
}

type jobShowCmd struct{ jobArg }

// Run implements `coppice job show`.
func (c *jobShowCmd) Run(a *app) error {
	cl, err := c.connect(a)
	if err != nil {
		return err
	}
	defer cl.Close()
	j, err := cl.Job(a.ctx, c.Job)
	if err != nil {
		return err
	}
	line, err := cl.Curve(a.ctx, c.Job)
	if err != nil {
		return err
	}
	s := shown(j)
	s.estimate = estimateOf(j, line.Points, ranOf(j, time.Now()))
	return a.print(s, func(w io.Writer) { writeJob(w, j, line) })
}

// shownJob is a job with the number of rows that its predictions are of, and, where it
// runs, how long it will.
type shownJob struct {
	*protocol.JobInfo
	Predictions *shownPredictions `json:"predictions,omitempty"` // in the place of JobInfo's
	*estimate
}

type shownPredictions struct {
	*protocol.BlobRef
	Rows int `json:"samples"`
}

func shown(j *protocol.JobInfo) *shownJob {
	s := &shownJob{JobInfo: j}
	if r, _, err := finished(j); err == nil && j.Predictions != nil {
		s.Predictions = &shownPredictions{j.Predictions, r.tested()}
	}
	return s
}

// writeJob writes what is known of a job, and its result where it is done.
func writeJob(w io.Writer, j *protocol.JobInfo, line *protocol.JobCurve) {
	lines := [][2]string{
		{"job", fmt.Sprint(j.ID)}, {"name", j.Name}, {"state", string(j.State)},
	}
	if j.Error != "" {
		lines = append(lines, [2]string{"error", j.Error})
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
	lines = append(lines, [2]string{"submitted", clock(j.Submitted)}, [2]string{"started", clock(j.Started)}, [2]string{"ended", clock(j.Ended)})
	if j.Started != 0 && j.State != protocol.Done {
		lines = append(lines, [2]string{"time", duration(ranOf(j, time.Now()))})
	}
	if !j.State.Final() {
		lines = append(lines, [2]string{"done", percent(j)}, [2]string{"rounds committed", count(j.Rounds)})
		lines = append(lines, runningLines(j, line.Points, time.Now())...)
		if len(j.Workers) > 0 {
			lines = append(lines, [2]string{"workers", nameList(j.Workers)})
		}
	}
	for _, l := range lossLines(line.Points) {
		lines = append(lines, [2]string{l[0] + " curve", l[1]})
	}
	if j.CellCount > 0 {
		pairs(w, append(lines, cellLines(j)...))
		return
	}
	r, _, err := finished(j)
	if err != nil {
		if j.Job != nil {
			lines = append(lines, [2]string{"algorithm", j.Job.Algorithm}, [2]string{"dataset", j.Dataset},
				[2]string{"seed", fmt.Sprint(j.Job.Seed)}, [2]string{"split", splitLine(j.Job, "")}, [2]string{"settings", settingsLine(j.Job.Params)})
		}
		pairs(w, lines)
		return
	}
	pairs(w, lines)
	fmt.Fprintln(w)
	r.Model = modelHint(j)
	r.text(w)
}

// modelHint says how to get the models of a job.
func modelHint(j *protocol.JobInfo) string {
	if j.ModelDeleted != 0 {
		return "deleted " + clock(j.ModelDeleted)
	}
	if len(j.Models) > 1 {
		return fmt.Sprintf("coppice model download %s/0 --out FILE, and so on for each fold", j.Name)
	}
	return fmt.Sprintf("coppice model download %s --out FILE", j.Name)
}

type jobWatchCmd struct{ jobArg }

func (*jobWatchCmd) outputs() []string { return []string{outputJSONL} }

// Run implements `coppice job watch`.
func (c *jobWatchCmd) Run(a *app) error {
	cl, err := c.connect(a)
	if err != nil {
		return err
	}
	defer cl.Close()
	a.asks.patient(protocol.ClientRead)
	cl.Faithful = true
	j, err := cl.Job(a.ctx, c.Job) // that there is none is said at once
	if err != nil {
		return left(c.Job, err)
	}
	if a.output == outputJSONL {
		return watchLines(a, cl, j)
	}
	if j, err = watch(a, cl, j); err != nil {
		return err
	}
	r, _, err := finished(j)
	if err != nil {
		return err
	}
	a.warnSuspect(j)
	if j.CellCount > 0 {
		return a.print(j, func(w io.Writer) { pairs(w, cellLines(j)) })
	}
	r.Model = modelHint(j)
	if err := r.addHeldOut(a, cl, j); err != nil {
		return err
	}
	return a.print(r, r.text)
}
