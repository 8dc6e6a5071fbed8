package runner

import (
	"time"

	"github.com/coppice-ldl/coppice/experiment/state"
	"github.com/coppice-ldl/coppice/internal/budget"
)

// Queue hands out the cells of groups, each of which is one row on one dataset, whose cells
// take about as long as each other. It is not safe for concurrent use.
type Queue struct {
	groups  []budget.Group
	done    int
	seconds float64 // of all that are done
	running map[int]running
	next    int    // number of the next cell that is handed out
	bounded bool   // a group has a budget
	may     []bool // of remaining
}

type running struct {
	group int
	since time.Time
}

// NewQueue makes the queue of so many cells of each group.
func NewQueue(cells []int) *Queue {
	q := &Queue{running: make(map[int]running)}
	for _, n := range cells {
		q.groups = append(q.groups, budget.Group{Left: n})
	}
	return q
}

// Within sets the budget of a group, which others may share.
func (q *Queue) Within(group int, b *Budget) {
	q.groups[group].Budget, q.bounded = b, true
}

// Earlier notes that so many cells of a group have ended in earlier runs: their time is known.
func (q *Queue) Earlier(group, cells int, seconds float64) {
	g := &q.groups[group]
	g.Begun, g.Done, g.Seconds = cells > 0, cells, seconds
}

// Next returns the group of the next cell, and a number to end it by; ok: there is one. Each
// group's first cell comes before any second, so that its time is known; then come the cells
// that take longest, so that no long one is last. Cells for which no budget is left are not handed
// out, and others only later where the cells that are running decide.
func (q *Queue) Next(now time.Time) (of, number int, ok bool) {
	of = -1
	may := q.planned(now)
	for i := range q.groups {
		g := &q.groups[i]
		if !may[i] {
			continue
		}
		if !g.Begun {
			of = i
			break
		}
		if of < 0 || q.estimate(i) > q.estimate(of) {
			of = i
		}
	}
	if of < 0 {
		return 0, 0, false
	}
	q.groups[of].Left--
	q.groups[of].Begun = true
	number = q.next
	q.next++
	q.running[number] = running{of, now}
	return of, number, true
}

// End notes that a cell has ended.
func (q *Queue) End(number int, now time.Time) (seconds float64) {
	r := q.running[number]
	delete(q.running, number)
	seconds = now.Sub(r.since).Seconds()
	g := &q.groups[r.group]
	g.End(seconds)
	q.done++
	q.seconds += seconds
	if g.Budget != nil {
		g.Budget.Spent += seconds
	}
	return seconds
}

// estimate returns the seconds that a cell of a group takes: the mean of its own, else of all.
func (q *Queue) estimate(of int) float64 { return q.groups[of].Estimate(q.usual()) }

// usual returns the mean of the seconds of all cells that have ended; 0: none has.
func (q *Queue) usual() float64 {
	if q.done == 0 {
		return 0
	}
	return q.seconds / float64(q.done)
}

// Runs counts the cells of each group that have ended, run or may begin, for an estimate.
func (q *Queue) Runs(now time.Time) []state.Runs {
	list, may := make([]state.Runs, len(q.groups)), q.planned(now)
	for i := range q.groups {
		g, r := &q.groups[i], &list[i]
		r.All, r.Ended, r.Timed, r.Seconds = g.Done, g.Done, g.Done, g.Seconds
		if may[i] {
			r.All += g.Left
		}
	}
	for _, at := range q.running {
		r := &list[at.group]
		r.All, r.Running = r.All+1, append(r.Running, now.Sub(at.since).Seconds())
	}
	return list
}

// Running is how many cells are handed out and have not ended.
func (q *Queue) Running() int { return len(q.running) }
