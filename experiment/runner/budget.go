package runner

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Budget bounds the computing time of the cells of some groups together. It decides which cells
// are run, and never what a cell gives.
type Budget struct {
	Limit float64 // seconds
	Spent float64 // seconds of cells that have ended, in earlier runs too
}

// left returns the seconds that a budget has left beside the cells that are running; each of them
// is expected to take what it has taken at least.
func (q *Queue) left(b *Budget, now time.Time) float64 {
	left := b.Limit - b.Spent
	for _, r := range q.running {
		if q.groups[r.group].budget == b {
			left -= max(q.estimate(r.group), now.Sub(r.since).Seconds())
		}
	}
	return left
}

// planned says of each group whether its next cell may begin. A group that has a budget may begin
// while anything is left of it, so that the time of its cells is known. Then those groups go
// on whose cells all fit into what is left, beginning with the group that needs least: a row without
// all of its folds is not compared with others.
func (q *Queue) planned(now time.Time) []bool {
	if !q.bounded {
		return q.remaining()
	}
	may, byBudget := make([]bool, len(q.groups)), make(map[*Budget][]int)
	for i := range q.groups {
		g := &q.groups[i]
		if may[i] = g.budget == nil && g.cells > 0; g.budget != nil && g.cells > 0 {
			byBudget[g.budget] = append(byBudget[g.budget], i)
		}
	}
	for b, groups := range byBudget {
		need := func(i int) float64 { return float64(q.groups[i].cells) * q.estimate(i) }
		slices.SortFunc(groups, func(i, j int) int { return cmp.Or(cmp.Compare(need(i), need(j)), cmp.Compare(i, j)) })
		left := q.left(b, now)
		for _, i := range groups {
			g := &q.groups[i]
			if g.begun && g.done == 0 {
				continue // its first cell is running: what the others need is not known
			}
			if g.begun {
				left -= need(i)
				may[i] = left >= 0
			} else {
				may[i] = q.left(b, now) > 0
			}
		}
	}
	return may
}

// remaining says of each group whether it has cells that were not handed out.
func (q *Queue) remaining() []bool {
	q.may = q.may[:0]
	for i := range q.groups {
		q.may = append(q.may, q.groups[i].cells > 0)
	}
	return q.may
}

// Waits reports whether cells that may not begin now may do so once one has ended.
func (q *Queue) Waits() bool {
	for _, r := range q.running {
		b := q.groups[r.group].budget
		if b != nil && slices.ContainsFunc(q.groups, func(g group) bool { return g.budget == b && g.cells > 0 }) {
			return true
		}
	}
	return false
}

// NotRun returns how many cells were not handed out.
func (q *Queue) NotRun() (n int) {
	for i := range q.groups {
		n += q.groups[i].cells
	}
	return n
}

// limit returns how long a cell that was handed out may run: as long as its budget lasts.
func (q *Queue) limit(number int) time.Duration {
	r := q.running[number]
	b := q.groups[r.group].budget
	if b == nil {
		return math.MaxInt64
	}
	return time.Duration(max(0, b.Limit-b.Spent) * float64(time.Second))
}

// Firsts reports whether the first cell of each group has ended that has one, or that may begin.
func (q *Queue) Firsts(now time.Time) bool {
	may := q.planned(now)
	for i := range q.groups {
		if g := &q.groups[i]; g.begun && g.done == 0 || !g.begun && may[i] {
			return false
		}
	}
	return true
}
