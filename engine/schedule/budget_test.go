package schedule

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/internal/digests"
)

// shareForTest opens the share of a job of two groups of three tasks, in the order 0, 1, 0, 1, 0, 1. They share a
// budget of 100 s. Earlier tasks took 10 s of it. Two tasks of the second group have ended elsewhere and took 20 s
// each. took has the seconds of the tasks with a recorded result, which are the first ones.
func shareForTest(b *Budgets, took ...float64) *Share {
	o := ShareOptions{
		Limits: map[string]float64{"x": 100}, Before: make(map[string]float64),
		Rows: []Row{{Budget: "x"}, {Budget: "x", Ended: 2, Seconds: 40}},
	}
	waiting, known := []int{3, 3}, []Known(nil)
	for task, seconds := range took {
		o.Before["x"] += seconds
		waiting[task%2]--
		known = append(known, Known{uint32(task), digests.Digest{1}, time.Duration(seconds * float64(time.Second))})
	}
	s := b.Open(o)
	b.Spend(map[string]float64{"x": 10})
	s.begin([]int32{0, 1, 0, 1, 0, 1}, waiting, known)
	return s
}

// TestShare: what is spent is what the log has of the submission, and what has ended since.
func TestShare(t *testing.T) {
	var b Budgets
	now := time.Now()
	s := shareForTest(&b, 30)
	check := func(what string, at time.Time, may, over []bool) {
		t.Helper()
		if got := s.may(at); !slices.Equal(got, may) {
			t.Errorf("%s: %v may begin, want %v", what, got, may)
		}
		if got := s.over(at); !slices.Equal(got, over) {
			t.Errorf("%s: over are %v, want %v", what, got, over)
		}
	}
	neither, both := []bool{false, false}, []bool{true, true}
	// 60 s are left. The other tasks of the first group need 60 s, and the tasks of the second as much.
	check("at first", now, []bool{true, false}, neither)
	s.start(2)
	if got := s.computing(2, now); got != 60*time.Second {
		t.Errorf("a task may take %v", got)
	}
	check("while a task runs the other group waits for its end", now.Add(time.Second), []bool{true, false}, neither)
	s.again(2) // its worker is gone
	check("a task that was given back fits again", now, []bool{true, false}, neither)
	s.start(4)
	s.end(4, 50*time.Second)
	check("tasks of 40 s do not fit into 10 s", now, neither, both)
	if s.Close(); !b.Empty() {
		t.Error("a share that is closed is open")
	}
}

// TestShareOfJobs: the jobs of a submission share their budgets.
func TestShareOfJobs(t *testing.T) {
	var b Budgets
	now := time.Now()
	first, second := shareForTest(&b), shareForTest(&b)
	if !first.may(now)[0] || !second.may(now)[0] {
		t.Fatal("the first tasks do not begin")
	}
	first.start(0)
	second.start(0)
	first.end(0, 85*time.Second)
	if second.may(now)[1] || second.over(now)[1] {
		t.Error("5 s are left, and the task of another job runs")
	}
	second.end(0, time.Second)
	if may := second.may(now); !may[0] || may[1] {
		t.Errorf("of 4 s %v may begin, and not the tasks that take 1 s", may)
	}
	first.Close()
	b.Spend(map[string]float64{"x": 10 + 85 + 3}) // the log has 3 s more of the first job
	if got := b.byName["x"].spent; got != 10+85+3+1 {
		t.Errorf("%v s are spent", got)
	}
	second.Close()
	third := shareForTest(&b, 1)
	b.Spend(map[string]float64{"x": 10 + 88.5})
	if got := b.byName["x"].spent; got != 10+88.5+1 {
		t.Errorf("%v s are spent, of jobs that are done too", got)
	}
	third.Close()
}

// TestShareOfAResultThatCame while its task waited again: it counts, and the task is not left.
func TestShareOfAResultThatCame(t *testing.T) {
	var b Budgets
	s := shareForTest(&b)
	s.start(0)
	s.again(0)
	s.end(0, 20*time.Second)
	if g := &s.groups[0]; g.left != 2 || g.done != 1 || !g.begun || b.byName["x"].spent != 30 {
		t.Errorf("%+v, %v s are spent", g, b.byName["x"].spent)
	}
	if s.skip(0, 2); s.groups[0].left != 0 {
		t.Errorf("%d are left of a group that is not run", s.groups[0].left)
	}
}

// TestShareWithoutBudget: tasks of a group without a budget always begin, and may take any time.
func TestShareWithoutBudget(t *testing.T) {
	var b Budgets
	now := time.Now()
	s := b.Open(ShareOptions{Limits: map[string]float64{"x": 1}, Rows: []Row{{}, {Budget: "x"}}})
	b.Spend(map[string]float64{"x": 1})
	s.begin([]int32{0, 1}, []int{1, 1}, nil)
	if may, over := s.may(now), s.over(now); !slices.Equal(may, []bool{true, false}) ||
		!slices.Equal(over, []bool{false, true}) {
		t.Errorf("%v may begin, over are %v", may, over)
	}
	s.start(0)
	if limit := s.computing(0, now); limit < 100*365*24*time.Hour {
		t.Errorf("a task may take %v", limit)
	}
}

// TestShareOfEqualGroups: of two jobs' groups that need as much, only one begins if the budget has enough for one.
func TestShareOfEqualGroups(t *testing.T) {
	var b Budgets
	o := ShareOptions{Limits: map[string]float64{"x": 10}, Rows: []Row{{Budget: "x", Ended: 1, Seconds: 3}}}
	first, second := b.Open(o), b.Open(o)
	b.Spend(nil)
	for _, s := range []*Share{first, second} {
		s.begin([]int32{0, 0}, []int{2}, nil)
	}
	if now := time.Now(); !first.may(now)[0] || second.may(now)[0] {
		t.Errorf("%v and %v may begin", first.may(now), second.may(now))
	}
}

// TestMayBegin: first tasks begin while anything is left. Then those groups go on whose tasks all fit into the rest, in
// the order of what they need. Nothing else begins, and the budget is over if nothing is computed either.
func TestMayBegin(t *testing.T) {
	b, other := &budget{limit: 100, spent: 40}, &budget{limit: 10, spent: 10}
	groups := []taskGroup{
		{budget: b, left: 4, begun: true, done: 2, seconds: 10}, // 20 s
		{budget: b, left: 1, begun: true, done: 1, seconds: 15}, // 15 s
		{budget: b, left: 3},                                      // not begun
		{budget: b, left: 2, begun: true},                         // its first task is computed
		{budget: b, begun: true, done: 3, seconds: 3},             // nothing is left of it
		{budget: other, left: 1},                                  // nothing is left for it
		{left: 7},                                                 // no budget
		{budget: b, left: 1, begun: true, done: 1, seconds: 1000}, // does not fit
	}
	for _, c := range []struct {
		begun []begunTask
		want  []bool
		over  bool
	}{
		{[]begunTask{{3, 4}}, []bool{true, true, true, false, false, false, true, false}, false},   // 7 of 60 s: usual
		{[]begunTask{{3, 30}}, []bool{false, true, true, false, false, false, true, false}, false}, // 30 of 60 s
		{[]begunTask{{3, 61}}, []bool{false, false, false, false, false, false, true, false}, false},
		{[]begunTask{{3, 30}, {0, 1}, {6, 900}}, []bool{false, true, true, false, false, false, true, false}, false},
	} {
		may := mayBegin(groups, c.begun, 7)
		if !slices.Equal(may, c.want) {
			t.Errorf("while %v are computed: %v, want %v", c.begun, may, c.want)
		}
		if b.isOver(groups, c.begun, may) != c.over || !other.isOver(groups, c.begun, may) {
			t.Errorf("while %v are computed: the budget is over, or is not", c.begun)
		}
	}
	b.spent = 100
	if may := mayBegin(groups, nil, 7); slices.Contains(may[:6], true) || !b.isOver(groups, nil, may) {
		t.Errorf("of a budget that is spent: %v", may)
	}
}

// TestMayBeginUntilOver: whatever tasks take, none begins if nothing is left of its budget. The tasks of a group that
// goes on fit if they take what is expected. In the end all tasks have ended, or their budget is over.
func TestMayBeginUntilOver(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		budgets := []*budget{{limit: rapid.Float64Range(0, 60).Draw(t, "limit")}, {limit: 30}}
		var groups []taskGroup
		var takes []float64
		for range rapid.IntRange(1, 6).Draw(t, "groups") {
			groups = append(groups, taskGroup{budget: budgets[rapid.IntRange(0, 1).Draw(t, "of")], left: rapid.IntRange(0, 6).
				Draw(t, "tasks")})
			takes = append(takes, rapid.Float64Range(0.5, 9).Draw(t, "takes"))
		}
		slots := rapid.IntRange(1, 3).Draw(t, "slots")
		var begun []begunTask
		for {
			may := mayBegin(groups, begun, 1)
			at := slices.Index(may, true)
			if at >= 0 && len(begun) < slots {
				g := &groups[at]
				if g.budget.spent >= g.budget.limit {
					t.Fatalf("a task of group %d begins, and nothing is left", at)
				}
				if g.done > 0 && float64(g.left)*g.estimate(1) > g.budget.limit-g.budget.spent {
					t.Fatalf("group %d goes on, and its %d tasks do not fit", at, g.left)
				}
				g.left--
				g.begun = true
				begun = append(begun, begunTask{group: at})
				continue
			}
			if len(begun) == 0 {
				break
			}
			first := begun[0]
			begun = begun[1:]
			groups[first.group].end(takes[first.group])
			groups[first.group].budget.spent += takes[first.group]
		}
		may := mayBegin(groups, nil, 1)
		for i := range groups {
			if g := &groups[i]; g.left > 0 && !g.budget.isOver(groups, nil, may) {
				t.Fatalf("%d tasks of group %d are left, and its budget is not over", g.left, i)
			}
		}
	})
}
