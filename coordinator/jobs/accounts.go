package jobs

import (
	"github.com/coppice-ldl/coppice/coordinator/dispatch"
	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/engine/schedule"
	"github.com/coppice-ldl/coppice/protocol"
)

// budgetOf returns the part of a job in the budgets of its submission, by what the log says; nil: the job has no budgets.
func budgetOf(store Log, j *state.Job) *dispatch.BudgetOptions {
	c := j.Job.Cells
	if c == nil || len(c.Budgets) == 0 {
		return nil
	}
	o := &dispatch.BudgetOptions{
		Key:       j.Experiment + "/" + j.Submission(),
		Share:     schedule.ShareOptions{Limits: make(map[string]float64), Before: spentOf(j)},
		Elsewhere: func(open func(uint64) bool) map[string]float64 { return spentElsewhere(store.State(), j, open) },
	}
	for _, b := range c.Budgets {
		o.Share.Limits[b.Of] = b.Seconds
	}
	for i := range c.Rows {
		row := schedule.Row{Ended: c.Rows[i].Ended, Seconds: c.Rows[i].EndedSeconds}
		if b := c.Rows[i].Budget; b > 0 {
			row.Budget = c.Budgets[b-1].Of
		}
		o.Share.Rows = append(o.Share.Rows, row)
	}
	return o
}

// spentElsewhere returns the seconds, by budget, that a submission has spent before it and in its jobs for which open is
// false; one of its jobs is given.
func spentElsewhere(s *state.State, one *state.Job, open func(job uint64) bool) map[string]float64 {
	spent, counted := make(map[string]float64), make(map[string]bool)
	for _, j := range s.Jobs() {
		if j.Experiment != one.Experiment || j.Submission() != one.Submission() || j.Job.Cells == nil {
			continue
		}
		for _, b := range j.Job.Cells.Budgets {
			if !counted[b.Of] { // each job of the submission says the same
				counted[b.Of] = true
				spent[b.Of] += b.Spent
			}
		}
		if !open(j.ID) {
			for name, seconds := range spentOf(j) {
				spent[name] += seconds
			}
		}
	}
	return spent
}

// spentOf returns the seconds that the log has of the runs of a job, by budget.
func spentOf(j *state.Job) map[string]float64 {
	if j.State == protocol.Done {
		return j.CellsSpent()
	}
	took := make([]uint64, j.Job.Cells.Count())
	for p := range j.RecordedFrom(j.Round+1, 0) {
		if int(p.Task) < len(took) {
			took[p.Task] = p.Compute
		}
	}
	return spentBy(j.Job.Cells, took)
}

// spentBy returns the seconds of runs by the name of their budget; took has nanoseconds, by task. nil: there are no budgets.
func spentBy(c *round.Cells, took []uint64) map[string]float64 {
	if len(c.Budgets) == 0 {
		return nil
	}
	spent := make(map[string]float64)
	for unit, cell := range c.All() {
		if b := c.Rows[cell.Row].Budget; b > 0 && took[unit] > 0 {
			spent[c.Budgets[b-1].Of] += float64(took[unit]) / 1e9
		}
	}
	return spent
}
