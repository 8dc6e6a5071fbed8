package dispatch

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/engine/schedule"
)

// TestBudgets: tasks that their budget holds back begin once it lets them. Tasks that will not begin are recorded as
// not run. A task that uses its budget up is stopped. The round ends with the others.
func TestBudgets(t *testing.T) {
	l, reporter := newLab(t, never), new(fakeReporter)
	l.options.Progress = reporter.options()
	l.options.Budget = &BudgetOptions{
		Key: "experiment",
		Share: schedule.ShareOptions{
			Limits: map[string]float64{"wide": 100, "short": .05, "spent": 100},
			Rows:   []schedule.Row{{}, {Budget: "wide"}, {Budget: "short"}, {Budget: "spent"}},
		},
		Elsewhere: func(func(uint64) bool) map[string]float64 { return map[string]float64{"spent": 100} },
	}
	w := l.join("w", 1)
	x := l.executor(jobID)
	defer x.Close()
	r := gatherRound(7)
	r.Gather().Groups, r.Gather().Apart = []int32{1, 0, 1, 2, 3, 3, 0}, true
	l.results.known = map[uint32]string{6: ""}
	d := l.do(x, 3, r)
	task0, task1 := w.first(0), w.run(1)
	l.until("a task to be held back, and two that are not run", func() bool {
		l.d.mu.Lock()
		defer l.d.mu.Unlock()
		v := x.schedule.View(time.Now())
		return v.Held == 1 && v.Ready == 1 && v.Left == 4
	})
	l.until("that to be shown", func() bool { return reporter.isShown("....---") })
	w.idle()
	task1.announce(1)
	w.run(3) // it waits behind the first task
	task0.announceAfter(0, 30*time.Second)
	w.run(2).announceAfter(2, time.Second)
	w.stops(3)
	if err := d.wait(); err != nil {
		t.Fatal(err)
	}
	for task, want := range []string{string(resultOf(0)), string(resultOf(1)), string(resultOf(2)), "", "", "", ""} {
		if result, err := d.res.Load(task); err != nil || string(result) != want {
			t.Errorf("task %d: result %q, error %v", task, result, err)
		}
	}
	l.results.mu.Lock()
	defer l.results.mu.Unlock()
	not := l.results.withheld
	if got := slices.Sorted(maps.Keys(not)); !slices.Equal(got, []uint32{3, 4, 5}) || not[3] < 50*time.Millisecond ||
		not[4] != 0 || not[5] != 0 {
		t.Errorf("not run: %v", not)
	}
	l.free(t, 1)
}

// TestBudgetsOfJobs: the jobs of a submission share its budgets while they are open. What was spent elsewhere is
// counted again when a job is opened or closed.
func TestBudgetsOfJobs(t *testing.T) {
	l := newLab(t, never)
	var open []uint64
	calls := 0
	l.options.Budget = &BudgetOptions{
		Key:   "experiment",
		Share: schedule.ShareOptions{Limits: map[string]float64{"x": 1}, Rows: []schedule.Row{{Budget: "x"}}},
		Elsewhere: func(isOpen func(uint64) bool) map[string]float64 {
			calls++
			open = nil
			for id := range uint64(5) {
				if isOpen(id) {
					open = append(open, id)
				}
			}
			return nil
		},
	}
	check := func(want ...uint64) {
		t.Helper()
		if !slices.Equal(open, want) {
			t.Errorf("open are %v, want %v", open, want)
		}
	}
	first := l.executor(1)
	check(1)
	other := ExecutorOptions{Budget: &BudgetOptions{Key: "another", Elsewhere: func(func(uint64) bool) map[string]float64 {
		return nil
	}}}
	third := l.d.Executor(3, &round.Job{}, manifest(), other)
	second := l.executor(2)
	check(1, 2)
	first.Close()
	check(2)
	before := calls
	second.Close()
	third.Close()
	if calls != before || len(l.d.budgets) != 0 {
		t.Errorf("%d calls for no job, and %d submissions are kept", calls-before, len(l.d.budgets))
	}
}

// TestPanicLeavesTheOthers: a panic of the scheduler, here for a budget without groups, leaves the other jobs and the
// leader as they are.
func TestPanicLeavesTheOthers(t *testing.T) {
	l := newLab(t, never)
	w := l.join("w", 2)
	l.options.Budget = &BudgetOptions{Key: "experiment", Elsewhere: func(func(uint64) bool) map[string]float64 {
		return nil
	}}
	x := l.executor(1)
	panicked := func() (p any) {
		defer func() { p = recover() }()
		var res round.Result
		return x.Do(l.ctx(), 1, gatherRound(1), &res)
	}()
	if panicked == nil {
		t.Fatal("a round without groups has budgets")
	}
	x.Close()
	l.options.Budget = nil
	other := l.executor(2)
	defer other.Close()
	d := l.do(other, 1, gatherRound(1))
	w.first(0).announce(0)
	d.gathers()
	l.free(t, 2)
}
