package remote

import (
	"context"
	"fmt"
	"time"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/experiment/overview"
	"github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/experiment/submission"
	"github.com/coppice-ldl/coppice/protocol"
)

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
