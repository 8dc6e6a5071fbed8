package local

import (
	"fmt"

	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/experiment/datasets"
	"github.com/coppice-ldl/coppice/experiment/state"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/job/local"
)

// work is what there is to do of one dataset.
type work struct {
	planned *experiment.Plan
	Data    *local.Data
	Runs    []experiment.Run         // of Plan, to be run
	Ended   map[int]experiment.Ended // what earlier runs have of each method of the spec
}

// work returns what there is to do of a dataset: the runs without a record, and the runs that are repeated. planned are the keys of
// runs that equal methods and datasets have; work adds to it.
func (r *Run) work(s *datasets.Set, records map[string]*experiment.Record, planned map[string]bool) (*work, error) {
	runs, err := s.Plan.Runs()
	if err != nil {
		return nil, err
	}
	w := &work{planned: s.Plan, Data: s.Data, Ended: make(map[int]experiment.Ended)}
	for _, run := range runs {
		if has := records[run.Key]; has != nil && !r.repeats(has) {
			w.Ended[run.Method] = w.Ended[run.Method].Plus(has)
		} else if !planned[run.Key] {
			planned[run.Key] = true
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
