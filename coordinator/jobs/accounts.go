package jobs

import (
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/budget"
	"github.com/coppice-ldl/coppice/protocol"
)

// accounts keep what the budgets of experiments have left, for the jobs that this leader drives. What
// has been spent is read from the log; what runs just now, workers say.
type accounts struct {
	store Log

	mu sync.Mutex
	of map[string]*account // by submission
}

// account is that of one submission, whose jobs share its budgets.
type account struct {
	jobs    []*share
	budgets map[string]*budget.Budget // by name
}

// share is the part that one job has in an account. It implements dispatch.Allowance.
type share struct {
	all    *accounts
	key    string
	job    *state.Job
	group  []int32 // by unit: its row
	groups []budget.Group
	runs   map[int]*time.Time // by unit: since when a worker computes it; nil: not yet
	before map[string]float64 // by budget: seconds that the log has of the job
	spent  map[string]float64 // by budget: seconds of cells that have ended since
}

// open returns the share of a job that begins to be driven; nil: it has no budgets.
func (a *accounts) open(j *state.Job) *share {
	if j.Job.Cells == nil || len(j.Job.Cells.Budgets) == 0 {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	s := &share{all: a, key: j.Experiment + "/" + j.Submission(), job: j, runs: make(map[int]*time.Time), spent: make(map[string]float64)}
	of := a.of[s.key]
	if of == nil {
		of = &account{budgets: make(map[string]*budget.Budget)}
		a.of[s.key] = of
	}
	for _, b := range j.Job.Cells.Budgets {
		if of.budgets[b.Of] == nil {
			of.budgets[b.Of] = &budget.Budget{Limit: b.Seconds}
		}
	}
	of.jobs = append(of.jobs, s)
	a.count(of, s)
	return s
}

// close ends the share of a job that is driven no more: the log has what counts.
func (s *share) close() {
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	of := s.all.of[s.key]
	for i, other := range of.jobs {
		if other == s {
			of.jobs = append(of.jobs[:i], of.jobs[i+1:]...)
			break
		}
	}
	if len(of.jobs) == 0 {
		delete(s.all.of, s.key)
		return
	}
	s.all.count(of, of.jobs[0])
}

// count sets what has been spent of the budgets of an account, one of whose shares is given.
func (a *accounts) count(of *account, one *share) {
	for _, b := range of.budgets {
		b.Spent = 0
	}
	here := make(map[uint64]*share)
	for _, s := range of.jobs {
		here[s.job.ID] = s
	}
	counted := make(map[string]bool)
	for _, j := range a.store.State().Jobs() {
		if j.Experiment != one.job.Experiment || j.Submission() != one.job.Submission() || j.Job.Cells == nil {
			continue
		}
		for _, b := range j.Job.Cells.Budgets {
			if to := of.budgets[b.Of]; to != nil && !counted[b.Of] { // each job of the submission says the same
				counted[b.Of] = true
				to.Spent += b.Spent
			}
		}
		s := here[j.ID]
		if s == nil {
			of.add(spentOf(j))
			continue
		}
		if s.before == nil {
			s.before = spentOf(j)
		}
		of.add(s.before)
		of.add(s.spent)
	}
}

// add counts seconds as spent.
func (a *account) add(seconds map[string]float64) {
	for name, s := range seconds {
		if b := a.budgets[name]; b != nil {
			b.Spent += s
		}
	}
}

// spentOf returns the seconds that the log has of the cells of a job, by budget.
func spentOf(j *state.Job) map[string]float64 {
	if j.State == protocol.Done {
		return j.CellsSpent()
	}
	took := make([]uint64, j.Job.Cells.Count())
	for p := range j.PartsFrom(j.Round+1, 0) {
		if int(p.Unit) < len(took) {
			took[p.Unit] = p.Compute
		}
	}
	return spentBy(j.Job.Cells, took)
}

// spentBy returns the seconds of cells by the name of their budget; took are nanoseconds, by unit. nil: there
// are no budgets.
func spentBy(c *round.Cells, took []uint64) map[string]float64 {
	if len(c.Budgets) == 0 {
		return nil
	}
	spent := make(map[string]float64)
	for unit, cell := range c.All() {
		if b := c.Rows[cell.Row].Budget; b > 0 && took[unit] > 0 {
			spent[c.Budgets[b-1].Of] += seconds(took[unit])
		}
	}
	return spent
}

func seconds(nanoseconds uint64) float64 { return float64(nanoseconds) / 1e9 }
