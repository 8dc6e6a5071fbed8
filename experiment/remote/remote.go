// Package remote reads experiments from a cluster over HTTP.
package remote

import (
	"context"
	"math"
	"path/filepath"
	"reflect"
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

// gridsApart is the least time between two readings of a grid.
const gridsApart = time.Second

// Grid draws how far the runs of an experiment on a cluster are.
type Grid struct {
	from client.Experiments
	next time.Time                // the next reading
	of   protocol.Experiment      // that the grid is of
	grid *protocol.ExperimentGrid // nil: it was not read
}

// NewGrid returns the grid of an experiment.
func NewGrid(cl *client.Client) *Grid { return &Grid{from: cl.Experiments()} }

// See takes a line of the changes of the experiment. If the grid cannot be read, it stays as it is: the report at the
// end says what is wrong.
func (g *Grid) See(ctx context.Context, x *protocol.Experiment) {
	if g.grid != nil && reflect.DeepEqual(*x, g.of) || time.Now().Before(g.next) && !x.Ended() {
		return
	}
	if grid, err := g.from.Grid(ctx, x.Name, protocol.GridQuery{}); err == nil {
		g.grid, g.of = grid, *x
	}
	g.next = time.Now().Add(gridsApart)
}

// Lines draws the grid, or returns nil if it was not read.
func (g *Grid) Lines(columns, lines int) []string {
	if g.grid == nil {
		return nil
	}
	return overview.Lines(g.grid, columns, lines)
}
