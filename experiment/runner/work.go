// Package runner computes the cells of experiments in this process.
package runner

import (
	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/experiment/state"
	"github.com/coppice-ldl/coppice/job/local"
)

// Work is what there is to do of one dataset.
type Work struct {
	Plan  *experiment.Plan
	Data  *local.Data
	Cells []experiment.Cell // of Plan, to be run
	// Ended is what earlier runs have of each row of the spec, and Kept are their records.
	Ended map[int]experiment.Ended
	Kept  []*experiment.Record
}

// NewWork returns what there is to do of a dataset: the cells without a record. A record does not count if again returns true
// for it.
func NewWork(p *experiment.Plan, data *local.Data, records map[string]*experiment.Record, again func(*experiment.Record) bool) (*Work, error) {
	cells, err := p.Cells()
	if err != nil {
		return nil, err
	}
	w := &Work{Plan: p, Data: data, Ended: make(map[int]experiment.Ended)}
	for _, cell := range cells {
		if r := records[cell.Key]; r != nil && !again(r) {
			w.Kept = append(w.Kept, r)
			w.Ended[cell.Row] = w.Ended[cell.Row].Plus(r)
		} else {
			w.Cells = append(w.Cells, cell)
		}
	}
	return w, nil
}

// Status is how far the cells are.
type Status struct {
	Done, Failed, Running, Cells int
	Estimate                     state.Estimate
	// Firsts is true if the first cell of each row on each dataset has ended, or is not to be run: the estimate is no guess.
	Firsts bool
}

// Options says how cells are run; none of them changes a result.
type Options struct {
	Lanes int // cells at a time
	// Methods, if set, names the rows of the spec in the estimate.
	Methods []string
	// Budgets has the budget of each row of the spec; nil: the row has none. A cell does not begin if nothing is left of its
	// budget, and is stopped soon after it has taken all of it.
	Budgets []*Budget
	// Begin, if set, is told of each cell that begins, one at a time.
	Begin func(w *Work, c *experiment.Cell)
	// Drop, if set, is told of each cell that its budget ended, as Begin is.
	Drop func(w *Work, c *experiment.Cell)
	// Put is given the record of each cell that ended, one at a time, while others are computed. An error of Put ends the
	// run. A cell counts once Put has returned.
	Put func(w *Work, c *experiment.Cell, r *experiment.Record) error
	// Show, if set, is told how far the run is when a cell ends, and each second.
	Show func(Status)
}
