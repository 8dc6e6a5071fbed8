package budget

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestPlan: first cells begin while anything is left; then go on those groups whose cells all fit beside what runs, the
// least first; nothing else runs, and the budget is over once nothing runs.
func TestPlan(t *testing.T) {
	b, other := &Budget{Limit: 100, Spent: 40}, &Budget{Limit: 10, Spent: 10}
	groups := []Group{
		{Budget: b, Left: 4, Begun: true, Done: 2, Seconds: 10}, // 20 s
		{Budget: b, Left: 1, Begun: true, Done: 1, Seconds: 15}, // 15 s
		{Budget: b, Left: 3},                                      // not begun
		{Budget: b, Left: 2, Begun: true},                         // its first cell runs
		{Budget: b, Begun: true, Done: 3, Seconds: 3},             // nothing is left of it
		{Budget: other, Left: 1},                                  // nothing is left for it
		{Left: 7},                                                 // no budget
		{Budget: b, Left: 1, Begun: true, Done: 1, Seconds: 1000}, // does not fit
	}
	for _, c := range []struct {
		running []Running
		want    []bool
		over    bool
	}{
		{[]Running{{3, 4}}, []bool{true, true, true, false, false, false, true, false}, false},   // 7 of 60 s: usual
		{[]Running{{3, 30}}, []bool{false, true, true, false, false, false, true, false}, false}, // 30 of 60 s
		{[]Running{{3, 61}}, []bool{false, false, false, false, false, false, true, false}, false},
		{[]Running{{3, 30}, {0, 1}, {6, 900}}, []bool{false, true, true, false, false, false, true, false}, false},
	} {
		may := Plan(groups, c.running, 7)
		if !slices.Equal(may, c.want) {
			t.Errorf("beside %v: %v, want %v", c.running, may, c.want)
		}
		if Over(b, groups, c.running, may) != c.over || !Over(other, groups, c.running, may) {
			t.Errorf("beside %v a budget is over, or not", c.running)
		}
	}
	b.Spent = 100
	if may := Plan(groups, nil, 7); slices.Contains(may[:6], true) || !Over(b, groups, nil, may) {
		t.Errorf("of a budget that is spent: %v", may)
	}
}

// TestWithin: whatever the cells take, no cell begins for which its budget has nothing left, a group that goes on
// ends if its cells take what they are expected to, and in the end all cells have ended or their budget is over.
func TestWithin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		budgets := []*Budget{{Limit: rapid.Float64Range(0, 60).Draw(t, "limit")}, {Limit: 30}}
		var groups []Group
		var takes []float64
		for range rapid.IntRange(1, 6).Draw(t, "groups") {
			groups = append(groups, Group{Budget: budgets[rapid.IntRange(0, 1).Draw(t, "of")], Left: rapid.IntRange(0, 6).Draw(t, "cells")})
			takes = append(takes, rapid.Float64Range(0.5, 9).Draw(t, "takes"))
		}
		lanes := rapid.IntRange(1, 3).Draw(t, "lanes")
		var running []Running
		for {
			may := Plan(groups, running, 1)
			at := slices.Index(may, true)
			if at >= 0 && len(running) < lanes {
				g := &groups[at]
				if g.Budget.Spent >= g.Budget.Limit {
					t.Fatalf("a cell of group %d begins, and nothing is left", at)
				}
				if g.Done > 0 && float64(g.Left)*g.Estimate(1) > g.Budget.Limit-g.Budget.Spent {
					t.Fatalf("group %d goes on, and its %d cells do not fit", at, g.Left)
				}
				g.Left--
				g.Begun = true
				running = append(running, Running{Group: at})
				continue
			}
			if len(running) == 0 {
				break
			}
			r := running[0]
			running = running[1:]
			groups[r.Group].End(takes[r.Group])
			groups[r.Group].Budget.Spent += takes[r.Group]
		}
		may := Plan(groups, nil, 1)
		for i := range groups {
			if g := &groups[i]; g.Left > 0 && !Over(g.Budget, groups, nil, may) {
				t.Fatalf("%d cells of group %d are left, and its budget is not over", g.Left, i)
			}
		}
	})
}
