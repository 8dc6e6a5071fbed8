package main

import (
	"context"
	"fmt"
	"time"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/experiment/grid"
	tables "github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/experiment/submission"
	"github.com/coppice-ldl/coppice/protocol"
)

// readAgain is the time after which a grid that could not be read is read again.
const readAgain = 2 * time.Second

// watchedGrid is the grid of an experiment on a cluster: the runs that have ended come with its changes, and what runs
// there are is read when it has changed. Outcomes are not read.
type watchedGrid struct {
	cl   *client.Client
	name string

	ended map[runOfJob]protocol.CellState // what is known of runs, whether they are in the grid or not
	of    string                          // the jobs and the outline that the grid is of
	next  time.Time                       // the next reading
	cells map[runOfJob][]*tables.Cell     // the cells of a run in the table; several if datasets have the same content
	grid  *grid.Grid                      // nil: it was not read
}

type runOfJob struct {
	job uint64
	run int
}

// see takes a line of the changes of the experiment. If it cannot be read what runs there are, the grid stays as it is:
// the report at the end says what is wrong.
func (w *watchedGrid) see(ctx context.Context, x *protocol.ExperimentLine) {
	for _, of := range x.RunsEnded {
		for _, c := range of.Runs {
			w.ended[runOfJob{of.Job, c.Task}] = c
			w.take(runOfJob{of.Job, c.Task}, c)
		}
	}
	of := fmt.Sprintf("%d %d %s", x.Newest, x.Jobs, x.Outline)
	if w.grid != nil && of == w.of || time.Now().Before(w.next) {
		return
	}
	if w.read(ctx) == nil {
		w.of = of
	}
	w.next = time.Now().Add(readAgain)
}

// read reads what runs the experiment has.
func (w *watchedGrid) read(ctx context.Context) error {
	e, err := submission.Read(ctx, clusterSource{w.cl}, w.name)
	if err != nil {
		return err
	}
	l, err := e.Layout(ctx)
	if err != nil {
		return err
	}
	t := l.Fill(nil, nil)
	at := make(map[string][]*tables.Cell, len(t.Cells))
	for i := range t.Cells {
		if key := l.Keys[i]; key != "" {
			at[key] = append(at[key], &t.Cells[i])
		}
	}
	of := make(map[runOfJob][]*tables.Cell)
	for _, j := range e.Jobs {
		cells, err := j.Cells()
		if err != nil {
			return err
		}
		for run := range cells {
			of[runOfJob{j.ID, run}] = at[cells[run].Key]
		}
	}
	w.cells, w.grid = of, grid.Of(t)
	for run, c := range w.ended {
		w.take(run, c)
	}
	return nil
}

// take notes in the grid how a run has ended. A failed run counts as failed until it has ended well in another job.
func (w *watchedGrid) take(run runOfJob, c protocol.CellState) {
	state := tables.Done
	if c.Failed {
		state = tables.Failed
	}
	for _, cell := range w.cells[run] {
		if !c.NotRun && cell.State != tables.Done {
			w.grid.Move(cell.Row, cell.Dataset, cell.State, state)
			cell.State = state
		}
	}
}

// lines draws the grid, or returns nil if it was not read.
func (w *watchedGrid) lines(columns, lines int) []string {
	if w.grid == nil {
		return nil
	}
	return w.grid.Lines(columns, lines)
}
