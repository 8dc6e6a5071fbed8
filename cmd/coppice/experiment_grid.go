package main

import (
	"context"
	"fmt"
	"time"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/experiment"
	tables "github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/experiment/submission"
	"github.com/coppice-ldl/coppice/protocol"
)

// The time between two readings of the cells of an experiment: at the least, and as a multiple of what
// one reading takes, so that watching costs the cluster little.
const (
	leastReading  = 2 * time.Second
	readingsApart = 20
)

// watchedGrid is the grid of an experiment on a cluster, as it was read last. How a cell ended is read once, and
// no outcome is.
type watchedGrid struct {
	cl     *client.Client
	name   string
	layout *experiment.Layout // of the spec; nil: that of the jobs

	of   string // the number of jobs and the outline that it is of
	done int    // when it was read
	next time.Time
	jobs []*watchedJob
	grid *cellGrid // nil: it was not read
}

// watchedJob is what is known of the cells of a job.
type watchedJob struct {
	id    uint64
	cells [][]*tables.Cell // by unit: those of the table, several where datasets have the same content
	known []bool           // by unit: it has ended, or is not run
}

// refresh reads how cells have ended, where their number has changed and it is time to. What cannot be read
// leaves the grid as far as it is: the report at the end says what is wrong.
func (w *watchedGrid) refresh(ctx context.Context, x *protocol.Experiment) {
	start, of := time.Now(), fmt.Sprintf("%d %s", x.Jobs, x.Outline)
	if start.Before(w.next) || w.grid != nil && of == w.of && x.Done == w.done {
		return
	}
	if w.read(ctx, of) == nil {
		w.done = x.Done
	}
	w.next = time.Now().Add(max(leastReading, readingsApart*time.Since(start)))
}

func (w *watchedGrid) read(ctx context.Context, of string) error {
	if w.grid == nil || of != w.of {
		if err := w.begin(ctx); err != nil {
			return err
		}
		w.of = of
	}
	for _, j := range w.jobs {
		if err := w.readJob(ctx, j); err != nil {
			return err
		}
	}
	return nil
}

// begin reads what the experiment has; how its cells have ended is not known then.
func (w *watchedGrid) begin(ctx context.Context) error {
	e, err := submission.Read(ctx, clusterSource{w.cl}, w.name)
	if err != nil {
		return err
	}
	l := w.layout
	if l == nil {
		if l, err = e.Layout(ctx); err != nil {
			return err
		}
	}
	t := l.Fill(nil, nil)
	at := make(map[string][]*tables.Cell, len(t.Cells))
	for i := range t.Cells {
		if key := l.Keys[i]; key != "" {
			at[key] = append(at[key], &t.Cells[i])
		}
	}
	var jobs []*watchedJob
	for _, j := range e.Jobs {
		cells, err := j.Cells()
		if err != nil {
			return err
		}
		of := &watchedJob{id: j.ID, known: make([]bool, len(cells))}
		for i := range cells {
			of.cells = append(of.cells, at[cells[i].Key])
		}
		jobs = append(jobs, of)
	}
	w.jobs, w.grid, w.done = jobs, gridOf(t), -1
	return nil
}

// readJob reads what is not known of the cells of a job.
func (w *watchedGrid) readJob(ctx context.Context, j *watchedJob) error {
	for _, s := range unknown(j.known) {
		if err := w.cl.Experiments().States(ctx, j.id, s.from, s.until, func(c protocol.CellState) error { return w.take(j, c) }); err != nil {
			return err
		}
	}
	return nil
}

// take notes how a cell has ended. One that failed counts as failed until it has ended well in another job.
func (w *watchedGrid) take(j *watchedJob, c protocol.CellState) error {
	if c.Task < 0 || c.Task >= len(j.cells) {
		return fmt.Errorf("job %d: run %d of %d", j.id, c.Task, len(j.cells))
	}
	j.known[c.Task] = true
	state := tables.Done
	if c.Failed {
		state = tables.Failed
	}
	for _, cell := range j.cells[c.Task] {
		if !c.NotRun && cell.State != tables.Done {
			w.grid.move(cell.Row, cell.Dataset, cell.State, state)
			cell.State = state
		}
	}
	return nil
}

// cellRange is the units from one on and below another.
type cellRange struct{ from, until int }

// betweenStretches is how many known units two stretches have between them at the least: to read as many again
// costs less than one more request.
const betweenStretches = 100

// unknown lists the stretches of units that have all of those that are not known.
func unknown(known []bool) (list []cellRange) {
	for u, is := range known {
		last := len(list) - 1
		switch {
		case is:
		case last >= 0 && u-list[last].until < betweenStretches:
			list[last].until = u + 1
		default:
			list = append(list, cellRange{u, u + 1})
		}
	}
	return list
}

// lines are those of the grid; nil: it was not read.
func (w *watchedGrid) lines(columns, lines int) []string {
	if w.grid == nil {
		return nil
	}
	return w.grid.lines(columns, lines)
}
