package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/protocol"
)

// standing is how far an experiment on a cluster is.
type standing struct {
	Name  string `json:"name"`
	Jobs  int    `json:"jobs"`
	State string `json:"state"` // running, queued, paused, done, failed or cancelled
	Done  int    `json:"runs_done"`
	Cells int    `json:"runs"`
	// NotRun are cells that are not run, since their budget is used up.
	NotRun int `json:"runs_not_run,omitempty"`
	// Phases has a text for each job that runs.
	Phases    []string `json:"phases,omitempty"`
	Submitted int64    `json:"submitted"`
	// Left is how many seconds the cells of the running jobs take still, as estimated from those that have
	// ended; 0: not known.
	Left   float64  `json:"seconds_left,omitempty"`
	Errors []string `json:"errors,omitempty"`
}

// stateOrder lists states: that of an experiment is the first that one of its jobs has.
var stateOrder = []protocol.JobState{protocol.Running, protocol.Queued, protocol.Paused, protocol.Failed, protocol.Cancelled, protocol.Done}

// standingsOf groups jobs, the newest first, by experiment, in the order of their newest jobs. Of
// a job that failed or was cancelled only the cells that ended count where a later submission of
// the experiment has a job on its dataset: that one has the others. So it is with cells that are not
// run.
func standingsOf(jobs []protocol.JobInfo) []*standing {
	var list []*standing
	newest := make(map[[2]string]*protocol.JobInfo) // of the last submission, by experiment and dataset
	for i := range jobs {
		j := &jobs[i]
		of := [2]string{j.Experiment, j.Dataset}
		if newest[of] == nil {
			newest[of] = j
		}
		late := j.Submission != newest[of].Submission || j.Submitted < newest[of].Submitted
		at := slices.IndexFunc(list, func(p *standing) bool { return p.Name == j.Experiment })
		if at < 0 {
			at = len(list)
			list = append(list, &standing{Name: j.Experiment, State: string(j.State), Submitted: j.Submitted})
		}
		if gone := j.State == protocol.Failed || j.State == protocol.Cancelled; gone && late {
			list[at].addEnded(j)
			continue
		}
		list[at].add(j, late)
	}
	return list
}

func (p *standing) add(j *protocol.JobInfo, late bool) {
	p.Jobs++
	p.Submitted = min(p.Submitted, j.Submitted)
	if slices.Index(stateOrder, j.State) < slices.Index(stateOrder, protocol.JobState(p.State)) {
		p.State = string(j.State)
	}
	p.Cells += j.CellCount - j.CellsAgain
	if late {
		p.Cells -= j.CellsNotRun
	} else {
		p.NotRun += j.CellsNotRun
	}
	switch j.State {
	case protocol.Failed, protocol.Cancelled:
		if j.Error != "" {
			p.Errors = append(p.Errors, fmt.Sprintf("job %s failed: %s", j.Name, j.Error))
		}
		p.Done += endedOf(j)
		return
	case protocol.Done:
		p.Done += j.CellCount - j.CellsNotRun
	case protocol.Running:
		done := j.Gathered
		if j.Progress != nil {
			done = max(done, int(j.Progress.Step))
			p.Phases = append(p.Phases, j.Name+": "+j.Progress.Phase)
		}
		p.Done += done - j.CellsNotRun
		p.Left += j.CellsLeft
	default:
		p.Done += j.Gathered - j.CellsNotRun
	}
	p.Done -= j.CellsAgain // they are not done until they have been run again
}

// addEnded adds the cells that have ended of a job that failed or was cancelled.
func (p *standing) addEnded(j *protocol.JobInfo) {
	ended := endedOf(j)
	p.Done, p.Cells, p.Submitted = p.Done+ended, p.Cells+ended, min(p.Submitted, j.Submitted)
}

// endedOf returns how many cells have ended of a job that failed or was cancelled, beyond those that were run
// again.
func endedOf(j *protocol.JobInfo) int {
	n := j.Gathered - j.CellsNotRun
	return n - min(n, j.CellsAgain)
}

func (p *standing) ended() bool {
	return p.State == string(protocol.Done) || p.State == string(protocol.Failed) || p.State == string(protocol.Cancelled)
}

// pollEvery is the time between two looks at an experiment.
const pollEvery = time.Second

// watchExperiment shows how far an experiment is until all of its jobs have ended, and returns how;
// layout is that of its spec, or nil.
func watchExperiment(a *app, cl *client.Client, name string, layout *experiment.Layout) (protocol.JobState, error) {
	m, grid := a.newLiveMeter(), &watchedGrid{cl: cl, name: name, layout: layout}
	defer m.clear()
	cl.Faithful = true // the cluster keeps the jobs, however long it is away
	first, firstAt := -1, time.Now()
	for {
		list, err := cl.ListJobs(a.ctx, protocol.JobQuery{Experiment: name})
		if err != nil {
			return "", leftExperiment(name, err)
		}
		if len(list.Jobs) == 0 {
			return "", noExperiment(name)
		}
		p := standingsOf(list.Jobs)[0]
		if p.ended() {
			for _, text := range p.Errors {
				a.note("%s", text)
			}
			return protocol.JobState(p.State), nil
		}
		if first < 0 {
			first, firstAt = p.Done, time.Now()
		}
		if m.live {
			grid.refresh(a.ctx, list.Jobs, p.Done)
		}
		m.showAll(p.line(first, time.Since(firstAt).Seconds(), waitsOf(list.Jobs)), grid.lines)
		select {
		case <-a.ctx.Done():
			return "", leftExperiment(name, a.ctx.Err())
		case <-time.After(pollEvery):
		}
	}
}

// line describes how far the experiment is; first were done seconds ago. Nothing tells when an experiment ends that
// waits.
func (p *standing) line(first int, seconds float64, waits string) string {
	text := fmt.Sprintf("%3.0f %%  %s of %s runs", 100*float64(p.Done)/float64(max(1, p.Cells)), count(p.Done), count(p.Cells))
	if p.NotRun > 0 {
		text += fmt.Sprintf(", %s not run", count(p.NotRun))
	}
	if left := p.left(first, seconds); left > 0 && waits == "" {
		text += "  ETA " + duration(left)
	}
	if len(p.Phases) > 0 {
		text += "  " + p.Phases[0]
	}
	if len(p.Phases) > 1 {
		text += fmt.Sprintf(" and %s more", count(len(p.Phases)-1))
	}
	return text + waits
}

// left estimates the seconds until the experiment ends, by the times of its cells, or else by how many
// have ended since first, seconds ago; 0: nothing tells.
func (p *standing) left(first int, seconds float64) float64 {
	switch {
	case p.Left > 0:
		return p.Left
	case p.Done > first:
		return seconds * float64(max(0, p.Cells-p.Done-p.NotRun)) / float64(p.Done-first)
	}
	return 0
}

// waitsOf says for what a running job waits.
func waitsOf(jobs []protocol.JobInfo) string {
	for i := range jobs {
		if j := &jobs[i]; j.State == protocol.Running && j.Waiting != "" {
			return "  waits: " + j.Waiting
		}
	}
	return ""
}

func leftExperiment(name string, err error) error {
	if !errors.Is(err, context.Canceled) {
		return err
	}
	return interrupted{fmt.Sprintf("experiment %s continues without this command; to watch it: coppice experiment watch %s; to cancel it: coppice experiment cancel %s", name, name, name)}
}

// nameArg names an experiment on a cluster.
type nameArg struct {
	Name string `arg:"" help:"Name of the experiment."`
}

// check refuses a spec in the place of a name.
func (n *nameArg) check() error {
	if !namedAsSpec(n.Name) {
		return nil
	}
	if _, err := os.Stat(n.Name); err == nil {
		return usagef("%s is a file; give the name of the experiment, which is in the key name of its spec", n.Name)
	}
	return nil
}

// cellLines describes a job of an experiment.
func cellLines(j *protocol.JobInfo) [][2]string {
	lines := [][2]string{{"experiment", j.Experiment}, {"dataset", j.Dataset}, {"runs", count(j.CellCount)}}
	if r, o, err := finished(j); err == nil {
		lines = append(lines, [2]string{"failed runs", count(o.CellsFailed)}, [2]string{"digest", r.ModelDigest})
	}
	return append(lines, [2]string{"results", "coppice experiment report " + j.Experiment})
}

type experimentListCmd struct {
	Shipped bool `help:"List the specs that are part of this program instead; experiment run takes their names."`
	serverFlags
}

// Run implements `coppice experiment list`.
func (c *experimentListCmd) Run(a *app) error {
	if c.Shipped {
		return listShipped(a)
	}
	cl, err := c.connect(a)
	if err != nil {
		return err
	}
	defer cl.Close()
	list, err := cl.ListJobs(a.ctx, protocol.JobQuery{Experiment: protocol.AnyExperiment})
	if err != nil {
		return err
	}
	all := standingsOf(list.Jobs)
	if all == nil {
		all = []*standing{}
	}
	return a.print(all, func(w io.Writer) {
		t := newTable(w, []string{"experiment", "state", "runs", "done", "jobs", "submitted"}, 3, 4, 5)
		for _, p := range all {
			t.AppendRow(rowOf(p.Name, p.State, count(p.Cells), count(p.Done), count(p.Jobs), clock(p.Submitted)))
		}
		t.Render()
	})
}

type experimentWatchCmd struct {
	nameArg
	reportFlags
	serverFlags
}

// Run implements `coppice experiment watch`.
func (c *experimentWatchCmd) Run(a *app) error {
	if err := cmp.Or(c.nameArg.check(), c.reportFlags.check()); err != nil {
		return err
	}
	cl, err := c.connect(a)
	if err != nil {
		return err
	}
	defer cl.Close()
	a.asks.patient(protocol.ClientRead)
	return watchAndReport(a, cl, c.Name, nil, &c.reportFlags)
}

// watchAndReport waits for the end of an experiment and reports it in a layout; nil: that of its
// jobs.
func watchAndReport(a *app, cl *client.Client, name string, layout *experiment.Layout, f *reportFlags) error {
	end, err := watchExperiment(a, cl, name, layout)
	if err != nil {
		return err
	}
	e, err := readJobs(a.ctx, cl, name)
	if err != nil {
		return err
	}
	e.layout = layout
	t, err := e.table(a.ctx)
	if err != nil {
		return err
	}
	t.noteLeftOut(a)
	if err := f.write(a, t.Table); err != nil {
		return err
	}
	if n := experiment.Count(t.Table).Missing; n > 0 && end != protocol.Done {
		return fmt.Errorf("%s of experiment %s missing, because a job failed or was cancelled; coppice experiment run submits them again", plural(n, "run"), name)
	}
	for _, cells := range experiment.NotRun(t.Table) {
		a.note("not run: %s", cells)
	}
	return nil
}

type experimentCancelCmd struct {
	nameArg
	changeFlags
}

// Run implements `coppice experiment cancel`.
func (c *experimentCancelCmd) Run(a *app) error {
	if err := c.nameArg.check(); err != nil {
		return err
	}
	cl, err := c.connect(a)
	if err != nil {
		return err
	}
	defer cl.Close()
	jobs, err := jobsOf(a, cl, c.Name)
	if err != nil {
		return err
	}
	cancelled := []string{}
	for i := range jobs {
		j := &jobs[i]
		if j.State.Final() {
			continue
		}
		if _, err := cl.Cancel(a.ctx, fmt.Sprint(j.ID)); err != nil {
			return err
		}
		cancelled = append(cancelled, j.Name)
	}
	return a.print(cancelled, func(w io.Writer) {
		fmt.Fprintf(w, "experiment %s: %s cancelled, %s had ended before\n", c.Name, plural(len(cancelled), "job"), count(len(jobs)-len(cancelled)))
	})
}

// jobsOf lists the jobs of an experiment, of which there is one at least.
func jobsOf(a *app, cl *client.Client, name string) ([]protocol.JobInfo, error) {
	if err := protocol.CheckName(name); err != nil {
		return nil, usagef("%q: %w", name, err)
	}
	list, err := cl.ListJobs(a.ctx, protocol.JobQuery{Experiment: name})
	if err == nil && len(list.Jobs) == 0 {
		return nil, noExperiment(name)
	}
	return list.Jobs, err
}

type experimentDeleteCmd struct {
	nameArg
	changeFlags
}

// Run implements `coppice experiment delete`.
func (c *experimentDeleteCmd) Run(a *app) error {
	if err := c.nameArg.check(); err != nil {
		return err
	}
	cl, err := c.connect(a)
	if err != nil {
		return err
	}
	defer cl.Close()
	jobs, err := jobsOf(a, cl, c.Name)
	if err != nil {
		return err
	}
	var numbers []string
	for i := range jobs {
		numbers = append(numbers, fmt.Sprint(jobs[i].ID))
	}
	d, err := cl.DeleteJobs(a.ctx, numbers...)
	if err != nil {
		return err
	}
	return a.print(d, func(w io.Writer) {
		fmt.Fprintf(w, "experiment %s was deleted, with %s\n", c.Name, plural(len(d.Jobs), "job"))
		fmt.Fprintln(w, whatIsFreed(d))
	})
}

type experimentExtendCmd struct {
	specArg
	cellFlags
	KeepModels bool `help:"Keep the model of each run, as a model of the cluster."`
	changeFlags
}

// Run implements `coppice experiment extend`.
func (c *experimentExtendCmd) Run(a *app) error {
	s, err := c.read()
	if s != nil && err != nil {
		return c.withData(a, s, err, false)
	}
	if err == nil {
		err = c.cellFlags.set(s)
	}
	if err != nil {
		return err
	}
	cl, err := c.connect(a)
	if err != nil {
		return err
	}
	defer cl.Close()
	if _, err := jobsOf(a, cl, s.Name); err != nil {
		return err
	}
	_, n, err := c.submit(a, cl, s, &c.cellFlags, c.KeepModels)
	if err != nil {
		return err
	}
	return a.print(struct {
		Name  string `json:"name"`
		Cells int    `json:"runs"`
	}{s.Name, n}, func(w io.Writer) {
		fmt.Fprintf(w, "%s added; to watch them: coppice experiment watch %s\n", plural(n, "run"), s.Name)
	})
}
