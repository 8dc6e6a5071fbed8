package local

import (
	"fmt"

	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/experiment/state"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/job/local"
)

// work is what there is to do of one dataset.
type work struct {
	planned *experiment.Plan
	Data    *local.Data
	Runs    []experiment.Run // of Plan, to be run
	// Ended is what earlier runs have of each method of the spec, and Kept are their records.
	Ended map[int]experiment.Ended
	Kept  []*experiment.Record
}

// newWork returns what there is to do of a dataset: the runs without a record. A record does not count if again returns true
// for it.
func newWork(p *experiment.Plan, data *local.Data, records map[string]*experiment.Record, again func(*experiment.Record) bool) (*work, error) {
	runs, err := p.Runs()
	if err != nil {
		return nil, err
	}
	w := &work{planned: p, Data: data, Ended: make(map[int]experiment.Ended)}
	for _, run := range runs {
		if r := records[run.Key]; r != nil && !again(r) {
			w.Kept = append(w.Kept, r)
			w.Ended[run.Method] = w.Ended[run.Method].Plus(r)
		} else {
			w.Runs = append(w.Runs, run)
		}
	}
	return w, nil
}

// Status is how far the runs are.
type Status struct {
	Done, Failed, Running, Runs int
	Estimate                    state.Estimate
	// Firsts is true if the first run of each method on each dataset has ended, or is not to be run: the estimate is no guess.
	Firsts bool
}

// Line describes in one line how far the runs are.
func (s Status) Line() string {
	ended := s.Done + s.Failed
	text := fmt.Sprintf("%3.0f %%  %s of %s runs, %s running", 100*float64(ended)/float64(max(1, s.Runs)), units.Count(ended), units.Count(s.Runs), units.Count(s.Running))
	if s.Failed > 0 {
		text += fmt.Sprintf(", %s failed", units.Count(s.Failed))
	}
	return text + s.Estimate.Text()
}

// sessionOptions says how runs are run; none of them changes a result.
type sessionOptions struct {
	Lanes int // runs at a time
	// Methods, if set, names the methods of the spec in the estimate.
	Methods []string
	// Budgets has the budget of each method of the spec; nil: the method has none. A run does not begin if nothing is left of its
	// budget, and is stopped soon after it has taken all of it.
	Budgets []*budget
	// Begin, if set, is told of each run that begins, one at a time.
	Begin func(w *work, c *experiment.Run)
	// Drop, if set, is told of each run that its budget ended, as Begin is.
	Drop func(w *work, c *experiment.Run)
	// Put is given the record of each run that ended, one at a time, while others are computed. An error of Put ends the
	// run. A run counts once Put has returned.
	Put func(w *work, c *experiment.Run, r *experiment.Record) error
	// Show, if set, is told how far the runs are soon after a run ends, each second, and at the end.
	Show func(Status)
}

// budget bounds the computing time of the runs of some methods together.
type budget struct {
	Limit float64 // seconds
	Spent float64 // seconds, in earlier runs
}

// budgetsOf lists the budget of each method of a spec; earlier runs have spent so many seconds of each method's budget.
func budgetsOf(s *experiment.Spec, spent []float64) []*budget {
	list, of := make([]*budget, len(s.Methods)), make(map[*experiment.Budget]*budget)
	for i := range s.Methods {
		b := s.Methods[i].Budget
		if b == nil {
			continue
		}
		if of[b] == nil {
			of[b] = &budget{Limit: b.Limit.Seconds()}
		}
		of[b].Spent += spent[i]
		list[i] = of[b]
	}
	return list
}
