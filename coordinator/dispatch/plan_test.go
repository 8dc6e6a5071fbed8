package dispatch

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawCrew draws workers and what they hold of a number of shards.
func drawCrew(t *rapid.T, label string, least, shards int) []candidate {
	n := rapid.IntRange(least, 6).Draw(t, label)
	workers := make([]candidate, n)
	for w := range workers {
		held := rapid.SliceOfN(rapid.Bool(), shards, shards).Draw(t, fmt.Sprintf("%s %d holds", label, w))
		workers[w] = candidate{fmt.Sprintf("w%d", w), func(s int) bool { return held[s] }}
	}
	return workers
}

func loads(of []string) map[string]int {
	n := make(map[string]int)
	for _, id := range of {
		n[id]++
	}
	return n
}

func checkPlan(t *rapid.T, p *plan, workers []candidate) {
	least, most := len(p.target), 0
	targets := loads(p.target)
	for _, w := range workers {
		least, most = min(least, targets[w.id]), max(most, targets[w.id])
	}
	if most-least > 1 {
		t.Fatalf("targets are not balanced: %v", targets)
	}
	for u := range p.target {
		for what, id := range map[string]string{"target": p.target[u], "owner": p.owner[u]} {
			if !slices.ContainsFunc(workers, func(w candidate) bool { return w.id == id }) {
				t.Fatalf("unit %d: the %s %q is not a live worker", u, what, id)
			}
		}
		if (p.standby[u] == "") != (len(workers) == 1) || p.standby[u] == p.target[u] {
			t.Fatalf("unit %d: target %q, standby %q of %d workers", u, p.target[u], p.standby[u], len(workers))
		}
	}
}

func TestPlanIsBalancedAndPrefersWhoHoldsTheShards(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shards := 1 << rapid.IntRange(0, 5).Draw(t, "log2 shards")
		units := 1 << rapid.IntRange(0, 5).Filter(func(l int) bool { return 1<<l <= shards }).Draw(t, "log2 units")
		workers := drawCrew(t, "crew", 1, shards)
		p := makePlan(units, shards, workers, nil)
		checkPlan(t, p, workers)
		for u := range units {
			pl := &planner{units: units, shards: shards, workers: workers}
			someone := slices.IndexFunc(workers, func(w candidate) bool { return pl.holdsAll(u, pl.find(w.id)) }) >= 0
			if someone && !pl.holdsAll(u, pl.find(p.owner[u])) {
				t.Fatalf("unit %d is given to %s, which must fetch its shards, though another holds them", u, p.owner[u])
			}
		}
	})
}

// TestPlanMovesLittle lets a worker join and another leave: a join moves at most
// the newcomer's share, a departure at most the leaver's.
func TestPlanMovesLittle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const shards = 32
		units := 1 << rapid.IntRange(0, 5).Draw(t, "log2 units")
		all := drawCrew(t, "crew", 2, shards)
		fewer := slices.Delete(slices.Clone(all), 0, 1)
		if rapid.Bool().Draw(t, "joins last") {
			fewer = all[:len(all)-1]
		}
		before := makePlan(units, shards, fewer, nil)
		joined := makePlan(units, shards, all, before)
		checkPlan(t, joined, all)
		share := (units + len(all) - 1) / len(all)
		if moved := differences(before.target, joined.target); moved > share {
			t.Fatalf("a join moves %d of %d units among %d workers", moved, units, len(all))
		}
		left := makePlan(units, shards, fewer, joined)
		checkPlan(t, left, fewer)
		if moved := differences(joined.target, left.target); moved > 2*share {
			t.Fatalf("a departure moves %d of %d units among %d workers", moved, units, len(fewer))
		}
		again := makePlan(units, shards, fewer, left)
		if differences(left.target, again.target) != 0 {
			t.Fatal("a plan changes though the crew did not")
		}
	})
}

func differences(a, b []string) (n int) {
	for i := range a {
		if a[i] != b[i] {
			n++
		}
	}
	return n
}
