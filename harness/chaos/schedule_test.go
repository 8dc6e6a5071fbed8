package chaos

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// names of a schedule, with what each fault draws from.
func written(list []planned) (s []string) {
	for _, p := range list {
		s = append(s, fmt.Sprint(p.round, p.fault.name, p.seed))
	}
	return s
}

func TestPlanFollowsFromTheSeed(t *testing.T) {
	one, again, other := plan(1, 20, catalog, false), plan(1, 20, catalog, false), plan(2, 20, catalog, false)
	if diff := cmp.Diff(written(one), written(again)); diff != "" {
		t.Errorf("the same seed gave another schedule:\n%s", diff)
	}
	if cmp.Equal(written(one), written(other)) {
		t.Error("another seed gave the same schedule")
	}
}

// Fifty rounds inject every measured fault twenty times; any number of rounds
// injects every fault.
func TestPlanShares(t *testing.T) {
	for rounds, want := range map[int]struct{ measured, lasting, other int }{50: {20, 3, 5}, 10: {4, 1, 1}, 3: {2, 1, 1},
		1: {1, 1, 1}} {
		counts := make(map[string]int)
		last := 1
		for _, p := range plan(7, rounds, catalog, false) {
			counts[p.fault.name]++
			if p.round < last || p.round > rounds {
				t.Fatalf("round %d after %d of %d", p.round, last, rounds)
			}
			last = p.round
		}
		for _, f := range catalog {
			n := want.other
			switch {
			case f.measured:
				n = want.measured
			case f.holds, f.recoveries > 1:
				n = want.lasting
			}
			if counts[f.name] != n {
				t.Errorf("%d rounds have %s %d times, want %d", rounds, f.name, counts[f.name], n)
			}
		}
	}
}

// Faults that are asked for by name are in every round.
func TestPlanEvery(t *testing.T) {
	seen := make(map[string]bool)
	for _, p := range plan(3, 4, catalog[:3], true) {
		seen[fmt.Sprint(p.round, p.fault.name)] = true
	}
	if len(seen) != 12 {
		t.Errorf("%d of 12", len(seen))
	}
}

// The legs share the schedule out among them.
func TestLegs(t *testing.T) {
	list, n := plan(1, 5, catalog, false), 0
	for l := range legs {
		part := of(list, l)
		if len(part) == 0 || l.String() == "" {
			t.Errorf("leg %d (%s) has nothing", l, l)
		}
		n += len(part)
	}
	if n != len(list) {
		t.Errorf("the legs have %d of %d", n, len(list))
	}
}

func TestCatalog(t *testing.T) {
	seen := make(map[string]bool)
	measured := 0
	for _, f := range catalog {
		if seen[f.name] || f.doc == "" || f.hit == nil || find(f.name) != f {
			t.Errorf("%+v", f)
		}
		seen[f.name] = true
		if got, want := f.within(), time.Duration(max(1, f.recoveries))*mostRecovery; got != want {
			t.Errorf("%s may take %v, want %v", f.name, got, want)
		}
		if f.measured {
			measured++
		}
	}
	if measured != 6 || len(Names()) != len(catalog) {
		t.Errorf("%d measured faults of %d", measured, len(Names()))
	}
}
