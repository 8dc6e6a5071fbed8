package experiment

import (
	"fmt"
	"slices"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/internal/units"
)

// NoBudgets takes the budgets out of the spec, so that all runs are computed.
func (s *Spec) NoBudgets() {
	for i := range s.Methods {
		s.Methods[i].Budget = nil
	}
}

// HasBudgets reports whether a method has one.
func (s *Spec) HasBudgets() bool {
	return slices.ContainsFunc(s.Methods, func(m Method) bool { return m.Budget != nil })
}

// Spent returns the seconds of computing that the runs of each method have taken, by the method's number.
func (l *Layout) Spent(records map[string]*Record) []float64 {
	spent := make([]float64, len(l.Table.Methods))
	counted := make(map[string]bool) // keys: a run may stand in two methods
	for i := range l.Table.Runs {
		key := l.Keys[i]
		if r := records[key]; r != nil && key != "" && !counted[key] {
			counted[key] = true
			spent[l.Table.Runs[i].Method] += r.Seconds
		}
	}
	return spent
}

// Ended are runs of a method on a dataset that have ended, and their seconds of computing.
type Ended struct {
	Runs    int
	Seconds float64
	// Well are the runs of these that ended well, and WellSeconds their seconds.
	Well        int
	WellSeconds float64
}

// Plus returns what has ended with one more run.
func (e Ended) Plus(r *Record) Ended {
	e.Runs, e.Seconds = e.Runs+1, e.Seconds+r.Seconds
	if r.Outcome.Error == "" {
		e.Well, e.WellSeconds = e.Well+1, e.WellSeconds+r.Seconds
	}
	return e
}

// Bound puts the budgets of the spec into a job of some of its runs: methods has, for each method of the
// job, its number in the spec. spent are the seconds that runs of each method of the spec have taken
// (Layout.Spent), and ended is what has ended of each on the job's dataset.
func (s *Spec) Bound(j *round.Job, methods []int, spent []float64, ended map[int]Ended) {
	number := make(map[*Budget]int)
	for i, method := range methods {
		b := s.Methods[method].Budget
		if b == nil {
			continue
		}
		if number[b] == 0 {
			of := round.CellBudget{Of: b.Of, Seconds: b.Limit.Seconds()}
			for method := range s.Methods {
				if s.Methods[method].Budget == b {
					of.Spent += spent[method]
				}
			}
			j.Cells.Budgets = append(j.Cells.Budgets, of)
			number[b] = len(j.Cells.Budgets)
		}
		r := &j.Cells.Rows[i]
		r.Budget, r.Ended, r.EndedSeconds = number[b], ended[method].Runs, ended[method].Seconds
	}
}

// NotRun lists the missing runs of methods with a budget: a text with their number for each method and dataset.
func NotRun(t *result.Table) (list []string) {
	type where struct{ dataset, method int }
	counts, order := make(map[where]int), []where(nil)
	for _, c := range t.Runs {
		if c.State != result.Missing || t.Methods[c.Method].Budget == "" {
			continue
		}
		at := where{c.Dataset, c.Method}
		if counts[at]++; counts[at] == 1 {
			order = append(order, at)
		}
	}
	for _, at := range order {
		list = append(list, fmt.Sprintf("%s, %s (%s with a time budget of %s)", t.Datasets[at.dataset].Name,
			t.Methods[at.method].Name, units.Plural(counts[at], "run"), t.Methods[at.method].Budget))
	}
	return list
}
