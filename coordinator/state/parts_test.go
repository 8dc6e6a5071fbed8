package state

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestPartList: whatever the order, a list has what was put, in order, each unit once; lists that
// were handed out stay; blocks are not empty and not too long.
func TestPartList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l partList
		want := make(map[[2]uint64]Part)
		span := rapid.SampledFrom([]uint32{3, 700, 3000}).Draw(t, "units")
		next := uint32(0)
		for range rapid.IntRange(0, 1500).Draw(t, "parts") {
			p := Part{Round: 1 + rapid.Uint64Range(0, 2).Draw(t, "round"), Unit: next, Of: span, Bytes: uint64(len(want))}
			if next++; rapid.IntRange(0, 3).Draw(t, "any") == 0 {
				p.Unit = rapid.Uint32Range(0, span).Draw(t, "unit")
			}
			_, there := want[[2]uint64{p.Round, uint64(p.Unit)}]
			before, n := l, len(want)
			var put bool
			if l, put = l.put(p); put == there || before.n != n {
				t.Fatalf("put %v, it was there: %v; the list before has %d parts, it had %d", put, there, before.n, n)
			}
			if put {
				want[[2]uint64{p.Round, uint64(p.Unit)}] = p
			}
		}
		checkParts(t, l, want)
		var pushed partList
		for p := range l.all {
			pushed.push(p)
		}
		if checkParts(t, pushed, want); len(pushed.blocks) != (len(want)+blockParts-1)/blockParts {
			t.Fatalf("%d parts, one behind the other, are in %d blocks", len(want), len(pushed.blocks))
		}
		upTo := rapid.Uint64Range(0, 4).Draw(t, "committed")
		l = l.after(upTo)
		maps.DeleteFunc(want, func(at [2]uint64, _ Part) bool { return at[0] <= upTo })
		checkParts(t, l, want)
	})
}

func checkParts(t *rapid.T, l partList, want map[[2]uint64]Part) {
	sorted := slices.SortedFunc(maps.Values(want), comparePart)
	if got := slices.Collect(l.all); !slices.Equal(got, sorted) || l.n != len(sorted) {
		t.Fatalf("%d parts, want %d", len(got), len(sorted))
	}
	for _, b := range l.blocks {
		if len(b) == 0 || len(b) > blockParts {
			t.Fatalf("a block of %d parts", len(b))
		}
	}
	last, ok := l.last()
	if ok != (len(sorted) > 0) || ok && last != sorted[len(sorted)-1] {
		t.Fatalf("the last is %+v", last)
	}
	round, unit := rapid.Uint64Range(0, 5).Draw(t, "of"), rapid.Uint32Range(0, 3000).Draw(t, "from")
	of := slices.DeleteFunc(slices.Clone(sorted), func(p Part) bool { return p.Round != round })
	if l.count(round) != len(of) {
		t.Fatalf("%d parts of round %d, want %d", l.count(round), round, len(of))
	}
	of = slices.DeleteFunc(of, func(p Part) bool { return p.Unit < unit })
	if got := slices.Collect(l.from(round, unit)); !slices.Equal(got, of) {
		t.Fatalf("%d parts of round %d from %d on, want %d", len(got), round, unit, len(of))
	}
}
