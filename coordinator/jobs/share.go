package jobs

import (
	"math"
	"time"

	"github.com/coppice-ldl/coppice/internal/budget"
)

// Open implements dispatch.Allowance.
func (s *share) Open(group []int32, open func(unit int) bool) {
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	c, of := s.job.Job.Cells, s.all.of[s.key]
	s.group, s.groups = group, make([]budget.Group, len(c.Rows))
	clear(s.runs)
	for i := range c.Rows {
		r, g := &c.Rows[i], &s.groups[i]
		g.Begun, g.Done, g.Seconds = r.Ended > 0, r.Ended, r.EndedSeconds
		if r.Budget > 0 {
			g.Budget = of.budgets[c.Budgets[r.Budget-1].Of]
		}
	}
	for unit, row := range group {
		if open(unit) {
			s.groups[row].Left++
		}
	}
	j := s.all.store.State().Job(s.job.ID)
	if j == nil {
		return
	}
	for p := range j.PartsFrom(j.Round+1, 0) {
		if int(p.Unit) < len(group) && (p.WasRun() || p.Compute > 0) {
			s.groups[group[p.Unit]].End(seconds(p.Compute))
		}
	}
}

// plan is what the budgets of an account say just now.
type plan struct {
	groups  []budget.Group
	running []budget.Running
	may     []bool
	from    map[*share]int // the first group of a share
}

// plan decides which groups may begin, of all jobs of the account together.
func (a *account) plan(now time.Time) *plan {
	p, total, done := &plan{from: make(map[*share]int)}, 0.0, 0
	for _, s := range a.jobs {
		first := len(p.groups)
		p.from[s] = first
		p.groups = append(p.groups, s.groups...)
		for u, since := range s.runs {
			r := budget.Running{Group: first + int(s.group[u])}
			if since != nil {
				r.Seconds = now.Sub(*since).Seconds()
			}
			p.running = append(p.running, r)
		}
		for i := range s.groups {
			total, done = total+s.groups[i].Seconds, done+s.groups[i].Done
		}
	}
	usual := 0.0
	if done > 0 {
		usual = total / float64(done)
	}
	p.may = budget.Plan(p.groups, p.running, usual)
	return p
}

// now returns the plan of the share's account, and the first of its groups there; all.mu is held.
func (s *share) now(now time.Time) (*plan, int) {
	p := s.all.of[s.key].plan(now)
	return p, p.from[s]
}

// May implements dispatch.Allowance.
func (s *share) May(group int, now time.Time) bool {
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	if s.groups[group].Budget == nil {
		return true
	}
	p, first := s.now(now)
	return p.may[first+group]
}

// Begin implements dispatch.Allowance.
func (s *share) Begin(unit int, now time.Time) bool {
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	g := &s.groups[s.group[unit]]
	if g.Budget != nil {
		if p, first := s.now(now); !p.may[first+int(s.group[unit])] {
			return false
		}
	}
	g.Left--
	g.Begun = true
	s.runs[unit] = nil
	return true
}

// Started implements dispatch.Allowance.
func (s *share) Started(unit int, now time.Time) time.Duration {
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	if _, runs := s.runs[unit]; runs {
		s.runs[unit] = &now
	}
	b := s.groups[s.group[unit]].Budget
	if b == nil {
		return math.MaxInt64
	}
	return time.Duration(max(0, b.Limit-b.Spent) * float64(time.Second))
}

// Return implements dispatch.Allowance.
func (s *share) Return(unit int) {
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	g := &s.groups[s.group[unit]]
	g.Left++
	if _, runs := s.runs[unit]; runs {
		delete(s.runs, unit)
		g.Begun = g.Done > 0 || s.begun(s.group[unit])
	}
}

// begun reports whether a cell of a group runs; all.mu is held.
func (s *share) begun(group int32) bool {
	for u := range s.runs {
		if s.group[u] == group {
			return true
		}
	}
	return false
}

// End implements dispatch.Allowance.
func (s *share) End(unit int, took time.Duration) {
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	g := &s.groups[s.group[unit]]
	if _, runs := s.runs[unit]; !runs { // it was given up, and is here after all
		g.Left--
	}
	delete(s.runs, unit)
	g.End(took.Seconds())
	if g.Budget != nil {
		g.Budget.Spent += took.Seconds()
		s.spent[s.job.Job.Cells.Budgets[s.job.Job.Cells.Rows[s.group[unit]].Budget-1].Of] += took.Seconds()
	}
}

// Over implements dispatch.Allowance.
func (s *share) Over(group int, now time.Time) bool {
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	b := s.groups[group].Budget
	if b == nil {
		return false
	}
	p, _ := s.now(now)
	return budget.Over(b, p.groups, p.running, p.may)
}

// Withheld implements dispatch.Allowance.
func (s *share) Withheld(units []uint32) {
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	for _, u := range units {
		s.groups[s.group[u]].Left--
	}
}
