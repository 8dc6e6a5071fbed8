package main

import (
	"context"
	"time"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/experiment"
)

// The time between two readings of the cells of an experiment: at the least, and as a multiple of what
// one reading takes, so that watching costs the cluster little.
const (
	leastReading  = 2 * time.Second
	readingsApart = 20
)

// watchedGrid is the grid of an experiment on a cluster, as it was read last.
type watchedGrid struct {
	cl     *client.Client
	name   string
	layout *experiment.Layout // of the spec; nil: that of the jobs

	of         *onCluster
	jobs, done int // when it was read
	next       time.Time
	grid       *cellGrid
}

// refresh reads the cells where their number has changed and it is time to. What cannot be read
// leaves the grid as it was: the report at the end says what is wrong.
func (w *watchedGrid) refresh(ctx context.Context, jobs, done int) {
	start := time.Now()
	if start.Before(w.next) || w.grid != nil && jobs == w.jobs && done == w.done {
		return
	}
	if grid := w.read(ctx, jobs); grid != nil {
		w.grid, w.done = grid, done
	}
	w.next = time.Now().Add(max(leastReading, readingsApart*time.Since(start)))
}

func (w *watchedGrid) read(ctx context.Context, jobs int) *cellGrid {
	if w.of == nil || jobs != w.jobs {
		of, err := readJobs(ctx, w.cl, w.name)
		if err != nil {
			return nil
		}
		of.layout = w.layout
		w.of, w.jobs = of, jobs
	}
	t, err := w.of.table(ctx, false)
	if err != nil {
		return nil
	}
	return gridOf(t.Table)
}

// lines are those of the grid; nil: it was not read.
func (w *watchedGrid) lines(columns, lines int) []string {
	if w.grid == nil {
		return nil
	}
	return w.grid.lines(columns, lines)
}
