package runner

import (
	"math"
	"slices"
	"time"

	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/internal/budget"
)

// Budget bounds the computing time of the cells of some groups together.
type Budget = budget.Budget

// planned says of each group whether its next cell may begin.
func (q *Queue) planned(now time.Time) []bool {
	if !q.bounded {
		return q.remaining()
	}
	var list []budget.Running
	for _, r := range q.running {
		list = append(list, budget.Running{Group: r.group, Seconds: now.Sub(r.since).Seconds()})
	}
	return budget.Plan(q.groups, list, q.usual())
}

// remaining says of each group whether it has cells that were not handed out.
func (q *Queue) remaining() []bool {
	q.may = q.may[:0]
	for i := range q.groups {
		q.may = append(q.may, q.groups[i].Left > 0)
	}
	return q.may
}

// Waits reports whether cells that may not begin now may do so once one has ended.
func (q *Queue) Waits() bool {
	for _, r := range q.running {
		b := q.groups[r.group].Budget
		if b != nil && slices.ContainsFunc(q.groups, func(g budget.Group) bool { return g.Budget == b && g.Left > 0 }) {
			return true
		}
	}
	return false
}

// limit returns how long a cell that was handed out may run: as long as its budget lasts.
func (q *Queue) limit(number int) time.Duration {
	r := q.running[number]
	b := q.groups[r.group].Budget
	if b == nil {
		return math.MaxInt64
	}
	return time.Duration(max(0, b.Limit-b.Spent) * float64(time.Second))
}

// Firsts reports whether the first cell of each group has ended that has one, or that may begin.
func (q *Queue) Firsts(now time.Time) bool {
	may := q.planned(now)
	for i := range q.groups {
		if g := &q.groups[i]; g.Begun && g.Done == 0 || !g.Begun && may[i] {
			return false
		}
	}
	return true
}

// Budgets lists the budget of each row of a spec; earlier runs have spent so many seconds of each row's budget.
func Budgets(s *experiment.Spec, spent []float64) []*Budget {
	list, of := make([]*Budget, len(s.Rows)), make(map[*experiment.Budget]*Budget)
	for i := range s.Rows {
		b := s.Rows[i].Budget
		if b == nil {
			continue
		}
		if of[b] == nil {
			of[b] = &Budget{Limit: b.Limit.Seconds()}
		}
		of[b].Spent += spent[i]
		list[i] = of[b]
	}
	return list
}
