package runner

import (
	"time"

	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/experiment/state"
	"github.com/coppice-ldl/coppice/internal/budget"
)

// Queue hands out the cells of groups, each of which is one row on one dataset, whose cells
// take about as long as each other. It is not safe for concurrent use.
type Queue struct {
	groups  []budget.Group
	timed   []timed // by group
	done    int
	seconds float64 // of all that are done
	running map[int]running
	next    int    // number of the next cell that is handed out
	bounded bool   // a group has a budget
	may     []bool // of remaining
}

// timed is the cells of a group that ended well, in earlier runs too, and their time.
type timed struct {
	cells   int
	seconds float64
}

type running struct {
	group int
	since time.Time
}

// NewQueue makes the queue of so many cells of each group.
func NewQueue(cells []int) *Queue {
	q := &Queue{running: make(map[int]running), timed: make([]timed, len(cells))}
	for _, n := range cells {
		q.groups = append(q.groups, budget.Group{Left: n})
	}
	return q
}

// Within sets the budget of a group, which others may share.
func (q *Queue) Within(group int, b *Budget) {
	q.groups[group].Budget, q.bounded = b, true
}

// Earlier notes which cells of a group have ended in earlier runs: their time is known.
func (q *Queue) Earlier(group int, e experiment.Ended) {
	g := &q.groups[group]
	g.Begun, g.Done, g.Seconds = e.Cells > 0, e.Cells, e.Seconds
	q.timed[group] = timed{e.Well, e.WellSeconds}
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

// End notes that a cell has ended. well is true if it has a result: otherwise it failed, or its budget ended it.
func (q *Queue) End(number int, now time.Time, well bool) (seconds float64) {
	r := q.running[number]
	delete(q.running, number)
	seconds = now.Sub(r.since).Seconds()
	g := &q.groups[r.group]
	g.End(seconds)
	if t := &q.timed[r.group]; well {
		t.cells, t.seconds = t.cells+1, t.seconds+seconds
	}
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
		r.All, r.Ended, r.Timed, r.Seconds = g.Done, g.Done, q.timed[i].cells, q.timed[i].seconds
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
