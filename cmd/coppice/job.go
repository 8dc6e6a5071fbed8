package main

import (
	"fmt"
	"io"
	"time"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/protocol"
)

type jobCmd struct {
	Submit submitCmd   `cmd:"" help:"Submit a job and return at once."`
	List   jobListCmd  `cmd:"" help:"List jobs."`
	Show   jobShowCmd  `cmd:"" help:"Describe a job."`
	Watch  jobWatchCmd `cmd:"" help:"Show a job's progress until it ends, then its result."`

	Predictions jobPredictionsCmd `cmd:"" help:"Write what a done job predicted of the rows that it held out."`

	Pause  jobPauseCmd  `cmd:"" help:"Stop a job for now; it keeps its last checkpoint."`
	Resume jobResumeCmd `cmd:"" help:"Let a paused job go on from its last checkpoint."`
	Cancel jobCancelCmd `cmd:"" help:"End a job; it will have no model."`
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
		fmt.Fprintf(w, "job %s is %s; watch it: coppice job watch %s\n", job.Name, job.State, job.Name)
	})
}

type jobListCmd struct{ serverFlags }

// Run implements `coppice job list`.
func (c *jobListCmd) Run(a *app) error {
	cl, err := c.connect(a)
	if err != nil {
		return err
	}
	defer cl.Close()
	jobs, err := cl.Jobs(a.ctx)
	if err != nil {
		return err
	}
	if jobs == nil {
		jobs = []protocol.JobInfo{}
	}
	return a.print(jobs, func(w io.Writer) {
		t := newTable(w, []string{"job", "name", "state", "done", "step", "K-L", "time", "ETA", "algorithm", "dataset", "submitted"}, 1, 4, 5, 6, 7, 8)
		for i := range jobs {
			t.AppendRow(jobRow(&jobs[i], time.Now()))
		}
		t.Render()
	})
}

func jobRow(j *protocol.JobInfo, now time.Time) []any {
	seconds := secondsOf(j, now)
	return rowOf(fmt.Sprint(j.ID), j.Name, stateOf(j), percent(j), stepOf(j.Progress), lossOf(j.Progress),
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
	seconds := j.Seconds
	if j.State == protocol.Running {
		seconds = float64(j.Ran) + max(0, now.Sub(time.Unix(j.Since, 0)).Seconds())
	} else if !j.State.Final() { // between two runs
		seconds = float64(j.Ran)
	}
	if j.Started != 0 {
		t.taken = duration(seconds)
	}
	if p := j.Progress; j.State == protocol.Running && j.WaitingFor == "" && p != nil && p.Step > 0 && p.Steps >= p.Step {
		t.left = duration(seconds * float64(p.Steps-p.Step) / float64(p.Step))
	}
	return t
}

func percent(j *protocol.JobInfo) string {
	switch {
	case j.State == protocol.Done:
		return "100 %"
	case j.Units > 0:
		return fmt.Sprintf("%.0f %%", 100*float64(j.Collected)/float64(j.Units))
	case j.Progress != nil && j.Progress.Steps > 0:
		return fmt.Sprintf("%.0f %%", 100*float64(j.Progress.Step)/float64(j.Progress.Steps))
	}
	return "-"
}

func stepOf(p *algorithms.Progress) string {
	if p == nil {
		return "-"
	}
	return count(p.Step)
}

func lossOf(p *algorithms.Progress) string {
	if p == nil || p.Loss < 0 {
		return "-"
	}
	return figure(p.Loss)
}

func algorithmOf(j *algorithms.Job) string {
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
	return a.print(shown(j), func(w io.Writer) { writeJob(w, j) })
}

// shownJob is a job with the number of rows that its predictions are of.
type shownJob struct {
	*protocol.JobInfo
	Predictions *shownPredictions `json:"predictions,omitempty"` // in the place of JobInfo's
}

type shownPredictions struct {
	*protocol.BlobRef
	Rows int `json:"rows"`
}

func shown(j *protocol.JobInfo) *shownJob {
	s := &shownJob{JobInfo: j}
	if r, _, err := finished(j); err == nil && j.Predictions != nil {
		s.Predictions = &shownPredictions{j.Predictions, r.tested()}
	}
	return s
}

// writeJob writes what is known of a job, and its result where it is done.
func writeJob(w io.Writer, j *protocol.JobInfo) {
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
		lines = append(lines, [2]string{"audit", fmt.Sprintf("%v of the units computed twice", float64(j.AuditPPM)/1e6)})
	}
	lines = append(lines, [2]string{"submitted", clock(j.Submitted)}, [2]string{"started", clock(j.Started)}, [2]string{"ended", clock(j.Ended)})
	if !j.State.Final() {
		lines = append(lines, [2]string{"done", percent(j)}, [2]string{"rounds committed", count(j.Rounds)})
		if p := j.Progress; p != nil && p.BestStep > 0 {
			lines = append(lines, [2]string{"best step so far", count(p.BestStep)})
		}
	}
	r, _, err := finished(j)
	if err != nil {
		if j.Job != nil {
			lines = append(lines, [2]string{"algorithm", j.Job.Algorithm}, [2]string{"dataset", j.Dataset},
				[2]string{"seed", fmt.Sprint(j.Job.Seed)}, [2]string{"split", splitLine(j.Job)}, [2]string{"settings", settingsLine(j.Job.Params)})
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
	if len(j.Models) > 1 {
		return fmt.Sprintf("coppice model download %s/0 --out FILE, and so on for each fold", j.Name)
	}
	return fmt.Sprintf("coppice model download %s --out FILE", j.Name)
}

type jobWatchCmd struct{ jobArg }

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
	if j, err = watch(a, cl, j); err != nil {
		return err
	}
	r, _, err := finished(j)
	if err != nil {
		return err
	}
	a.warnSuspect(j)
	r.Model = modelHint(j)
	if err := r.addHeldOut(a, cl, j); err != nil {
		return err
	}
	return a.print(r, r.text)
}
