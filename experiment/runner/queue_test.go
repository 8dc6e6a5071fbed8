package runner

import (
	"math"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/experiment/state"
)

// TestQueue: each cell is handed out once, no group's second cell before every group's first,
// and then those first that take longest.
func TestQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cells := rapid.SliceOfN(rapid.IntRange(0, 5), 1, 6).Draw(t, "runs")
		q, now := NewQueue(cells), time.Unix(0, 0)
		handed, begun := make([]int, len(cells)), 0
		for _, n := range cells {
			if n > 0 {
				begun++
			}
		}
		for n := 0; ; n++ {
			of, number, ok := q.Next(now)
			if !ok {
				break
			}
			if handed[of]++; handed[of] > 1 && n < begun {
				t.Fatalf("the second run of group %d comes as number %d", of, n)
			}
			if q.Running() != 1 {
				t.Fatalf("%d runs run", q.Running())
			}
			now = now.Add(time.Duration(of+1) * time.Second)
			if s := q.End(number, now, true); s != float64(of+1) {
				t.Fatalf("a run of group %d took %v s", of, s)
			}
			if n < begun-1 {
				continue
			}
			left, longest := 0.0, -1
			for i, c := range cells {
				left += float64(c-handed[i]) * float64(i+1)
				if c > handed[i] {
					longest = i
				}
			}
			if got := secondsLeft(q, now, 1); math.Abs(got-left) > 1e-9*left {
				t.Fatalf("%v s are left, want %v", got, left)
			}
			if longest > 0 && n >= begun && of < longest {
				t.Fatalf("group %d came before %d", of, longest)
			}
		}
		for i, c := range cells {
			if handed[i] != c {
				t.Fatalf("%d of %d runs of group %d", handed[i], c, i)
			}
		}
	})
}

// secondsLeft estimates the seconds until all runs of a queue have ended; 0 if that is not known.
func secondsLeft(q *Queue, now time.Time, lanes int) float64 {
	runs := q.Runs(now)
	for i := range runs {
		runs[i].Method = strconv.Itoa(i)
	}
	return state.EstimateOf(runs, lanes).Seconds
}

// TestQueueRuns: what runs counts with what is left of it, and the longest cell bounds the time.
func TestQueueRuns(t *testing.T) {
	q, now := NewQueue([]int{3}), time.Unix(0, 0)
	if secondsLeft(q, now, 2) != 0 {
		t.Error("an estimate before any run has ended")
	}
	_, first, _ := q.Next(now)
	now = now.Add(10 * time.Second)
	q.End(first, now, true)
	q.Next(now)
	if left := secondsLeft(q, now.Add(4*time.Second), 2); left != 10 {
		t.Errorf("%v s left: 6 of one run and 10 of another on two lanes", left)
	}
	if left := secondsLeft(q, now.Add(4*time.Second), 1); left != 16 {
		t.Errorf("%v s left on one lane", left)
	}
}

// TestQueueBudget: the first cells run while anything is left; then the groups whose cells all fit,
// those that need least first. Nothing else runs, and the estimate does not count it.
func TestQueueBudget(t *testing.T) {
	q, now := NewQueue([]int{3, 10, 10, 2}), time.Unix(0, 0)
	b := &Budget{Limit: 50, Spent: 2}
	for group := range 3 {
		q.Within(group, b)
	}
	seconds := []int{5, 1, 4, 100}
	handed := make([]int, 4)
	for n := 0; ; n++ {
		of, number, ok := q.Next(now)
		if !ok {
			break
		}
		if n < 4 && handed[of] > 0 {
			t.Errorf("group %d has a second run as number %d", of, n)
		}
		handed[of]++
		now = now.Add(time.Duration(seconds[of]) * time.Second)
		q.End(number, now, true)
		if n == 3 { // 10 of 50 s are spent by the first cells, and 2 before: 9 and 10 fit into 38, and 36 more do not
			if left := secondsLeft(q, now, 1); left != 100+9+10 || !q.Firsts(now) {
				t.Errorf("%v s left", left)
			}
		} else if n < 3 && q.Firsts(now) {
			t.Errorf("after %d runs all groups have begun", n+1)
		}
	}
	if want := []int{3, 10, 1, 2}; !slices.Equal(handed, want) || notRun(q) != 9 || b.Spent != 31 {
		t.Errorf("%v runs were handed out, want %v; %v s spent", handed, want, b.Spent)
	}
}

// TestQueueWaits: while the first cell of a group with a budget runs, nobody knows whether the others
// fit; a cell may run as long as the budget lasts.
func TestQueueWaits(t *testing.T) {
	q, now := NewQueue([]int{3, 1}), time.Unix(0, 0)
	q.Within(0, &Budget{Limit: 60, Spent: 15})
	_, first, _ := q.Next(now)
	if of, _, ok := q.Next(now); of != 1 || !ok {
		t.Fatalf("group %d", of)
	}
	if _, _, ok := q.Next(now); ok || !q.Waits() {
		t.Error("a second run before the first has ended")
	}
	if q.limit(first) != 45*time.Second || q.limit(first+1) < time.Hour {
		t.Errorf("limits %v and %v", q.limit(first), q.limit(first+1))
	}
	q.End(first, now.Add(30*time.Second), true)
	if _, _, ok := q.Next(now.Add(30 * time.Second)); ok || q.Waits() {
		t.Error("60 s of runs go into 15 s")
	}
}

// TestQueueEarlier: the time of cells that ended in earlier runs is known: the longest come first, and
// of a budget only what fits begins.
func TestQueueEarlier(t *testing.T) {
	q, now := NewQueue([]int{2, 2, 2}), time.Unix(0, 0)
	b := &Budget{Limit: 100, Spent: 90}
	q.Within(0, b)
	q.Within(1, b)
	for group, seconds := range []float64{6, 4, 20} {
		q.Earlier(group, experiment.Ended{Cells: 1, Seconds: seconds, Well: 1, WellSeconds: seconds})
	}
	if !q.Firsts(now) {
		t.Error("a first run is waited for")
	}
	var order []int
	for {
		of, number, ok := q.Next(now)
		if !ok {
			break
		}
		order = append(order, of)
		now = now.Add([]time.Duration{6, 4, 20}[of] * time.Second)
		q.End(number, now, true)
	}
	if want := []int{2, 2, 1, 1}; !slices.Equal(order, want) || notRun(q) != 2 {
		t.Errorf("groups in the order %v, want %v", order, want)
	}
}

// TestQueueFailures: the times of runs that failed are no ground for an estimate, also in earlier runs.
func TestQueueFailures(t *testing.T) {
	q, now := NewQueue([]int{3}), time.Unix(0, 0)
	q.Earlier(0, experiment.Ended{Cells: 1, Seconds: 50})
	for i, c := range []struct {
		well bool
		left float64
	}{{false, 0}, {true, 7}} {
		_, number, _ := q.Next(now)
		now = now.Add(7 * time.Second)
		q.End(number, now, c.well)
		if left := secondsLeft(q, now, 1); left != c.left {
			t.Errorf("after run %d: %v s are left, want %v", i, left, c.left)
		}
	}
}

// notRun returns how many cells were not handed out.
func notRun(q *Queue) (n int) {
	for i := range q.groups {
		n += q.groups[i].Left
	}
	return n
}
