// Package remote reads experiments from a cluster over HTTP.
package remote

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"time"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/experiment/overview"
	"github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/experiment/state"
	"github.com/coppice-ldl/coppice/experiment/submission"
	"github.com/coppice-ldl/coppice/protocol"
)

// Options say what is read of an experiment, and how commands that train a failed run alone find their data.
type Options struct {
	StatesOnly bool     // no values are read, but how each run has ended
	Spec       string   // the file of the spec; empty: it is not known
	Flags      []string // name the cluster in a command, as words for a shell
}

// Experiment is what a cluster has of an experiment so far.
type Experiment struct {
	Table  *result.Table
	Layout *experiment.Layout // of the last submission
	State  protocol.JobState
	Notes  []string // about runs that have ended and are not in the table
}

// Read reads an experiment in the layout of its last submission. The error is submission.ErrNone if the cluster does
// not have the experiment.
func Read(ctx context.Context, cl *client.Client, name string, o Options) (*Experiment, error) {
	e, err := submission.Read(ctx, source{cl}, name)
	if err != nil {
		return nil, err
	}
	l, err := e.Layout(ctx)
	if n := len(e.Jobs); err != nil && n > 0 {
		err = client.Withheld(err, "experiment", name, e.Jobs[n-1].Ownership)
	}
	if err != nil {
		return nil, err
	}
	read := e.Table
	if o.StatesOnly {
		read = e.States
	}
	t, leftOut, err := read(ctx, l)
	if err != nil {
		return nil, err
	}
	var jobs []state.Job
	for _, j := range slices.Backward(e.Jobs) {
		jobs = append(jobs, state.Job{JobInfo: j.JobInfo})
	}
	if experiment.Count(t).Failed > 0 {
		list, err := cl.Datasets().List(ctx)
		if err != nil {
			return nil, err
		}
		digests := make(map[string]string)
		for i := range list {
			digests[list[i].Name] = list[i].Digest
		}
		sets := e.Sets(t, func(name string) string { return digests[name] })
		folder := "" // of the files of folds
		if t.Spec != nil && t.Spec.Data != "" {
			folder = t.Spec.Data
		} else if o.Spec != "" {
			folder = filepath.Dir(o.Spec)
		}
		l.AddCommands(t, experiment.Sources{Sets: sets, Flags: o.Flags, File: experiment.FileIn(folder)})
	}
	return &Experiment{Table: t, Layout: l, State: state.Of(jobs).State, Notes: experiment.LeftOutNote(leftOut)}, nil
}

// source reads what a cluster has.
type source struct{ *client.Client }

// ExperimentJobs implements submission.Source.
func (s source) ExperimentJobs(ctx context.Context, experiment string) ([]protocol.JobInfo, error) {
	list, err := s.Jobs().List(ctx, protocol.JobQuery{Experiment: experiment, Sort: "submitted", Full: true})
	if err != nil {
		return nil, err
	}
	return list.Jobs, nil
}

// Outcomes implements submission.Source.
func (s source) Outcomes(ctx context.Context, job uint64, records bool, take func(protocol.CellOutcome) error) error {
	return s.Experiments().Outcomes(ctx, job, records, take)
}

// RunStates implements submission.Source.
func (s source) RunStates(ctx context.Context, job uint64, take func(protocol.CellState) error) error {
	return s.Experiments().States(ctx, job, 0, math.MaxInt32, take)
}

// ReadBlob implements submission.Source.
func (s source) ReadBlob(ctx context.Context, digest string) ([]byte, error) {
	return s.Blobs().Get(ctx, digest)
}

// readAgain is the time after which a grid that could not be read is read again.
const readAgain = 2 * time.Second

// Grid draws how far the runs of an experiment on a cluster are. The runs that have ended come with the changes of the
// experiment; what runs there are is read when it has changed. No outcome is read.
type Grid struct {
	from submission.Source
	name string

	ended map[runOfJob]protocol.CellState // what is known of runs, whether they are in the grid or not
	of    string                          // the jobs and the outline that the grid is of
	next  time.Time                       // the next reading
	keys  map[runOfJob]string             // of runs of the jobs
	done  map[string]bool                 // true if a run with the key has ended well
	grid  *overview.Grid                  // nil: it was not read
}

// NewGrid returns the grid of an experiment.
func NewGrid(cl *client.Client, name string) *Grid {
	return &Grid{from: source{cl}, name: name, ended: make(map[runOfJob]protocol.CellState)}
}

type runOfJob struct {
	job uint64
	run int
}

// See takes a line of the changes of the experiment. If it cannot be read what runs there are, the grid stays as it is:
// the report at the end says what is wrong.
func (g *Grid) See(ctx context.Context, x *protocol.ExperimentLine) {
	for _, of := range x.RunsEnded {
		for _, c := range of.Runs {
			g.ended[runOfJob{of.Job, c.Task}] = c
			g.take(runOfJob{of.Job, c.Task}, c)
		}
	}
	of := fmt.Sprintf("%d %d %s", x.Newest, x.Jobs, x.Outline)
	if g.grid != nil && of == g.of || time.Now().Before(g.next) {
		return
	}
	if g.read(ctx) == nil {
		g.of = of
	}
	g.next = time.Now().Add(readAgain)
}

// read reads what runs the experiment has.
func (g *Grid) read(ctx context.Context) error {
	e, err := submission.Read(ctx, g.from, g.name)
	if err != nil {
		return err
	}
	l, err := e.Layout(ctx)
	if err != nil {
		return err
	}
	keys := make(map[runOfJob]string)
	for _, j := range e.Jobs {
		runs, err := j.Runs()
		if err != nil {
			return err
		}
		for run := range runs {
			keys[runOfJob{j.ID, run}] = runs[run].Key
		}
	}
	g.keys, g.done, g.grid = keys, make(map[string]bool), overview.GridOf(l.Table, l.Keys)
	for run, c := range g.ended {
		g.take(run, c)
	}
	return nil
}

// take notes in the grid how a run has ended. A failed run counts as failed until it has ended well in another job.
func (g *Grid) take(run runOfJob, c protocol.CellState) {
	switch key, known := g.keys[run]; {
	case !known || c.NotRun || g.done[key]:
	case c.Failed:
		g.grid.Set(key, result.Failed)
	default:
		g.grid.Set(key, result.Done)
		g.done[key] = true
	}
}

// Lines draws the grid, or returns nil if it was not read.
func (g *Grid) Lines(columns, lines int) []string {
	if g.grid == nil {
		return nil
	}
	return g.grid.Lines(columns, lines)
}
