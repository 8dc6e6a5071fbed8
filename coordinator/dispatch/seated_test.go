package dispatch

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestSeated: the seats of workers, and how many of a worker's were given before one, are those that
// a look at all units finds.
func TestSeated(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		units := newUnits(rapid.IntRange(1, 12).Draw(t, "units"))
		workers := []*worker{{id: "a"}, {id: "b"}, {id: "a"}} // one came back
		s := make(seated)
		for order := range uint64(rapid.IntRange(1, 40).Draw(t, "events")) {
			u := rapid.IntRange(0, len(units)-1).Draw(t, "unit")
			at := &units[u].own().seats[rapid.IntRange(0, 1).Draw(t, "seat")]
			if at.of != nil {
				s.remove(at.of, at)
				*at = seat{}
				continue
			}
			w := rapid.SampledFrom(workers).Draw(t, "worker")
			*at = seat{worker: w.id, of: w, order: order}
			s.add(u, at)
		}
		find := func(of func(*seat) bool) (list []place) {
			for u := range units {
				for i := range units[u].seats {
					if at := &units[u].seats[i]; at.of != nil && of(at) {
						list = append(list, place{u, at})
					}
				}
			}
			return inOrder(list)
		}
		all := find(func(*seat) bool { return true })
		if !slices.Equal(s.all(), all) {
			t.Fatalf("%d seats, want %d", len(s.all()), len(all))
		}
		for _, id := range []string{"a", "b", "c"} {
			if !slices.Equal(s.of(id), find(func(at *seat) bool { return at.worker == id })) {
				t.Fatalf("worker %s has %d seats", id, len(s.of(id)))
			}
		}
		for _, p := range all {
			if n := len(find(func(at *seat) bool { return at.of == p.at.of && at.order < p.at.order })); s.before(p.at) != n {
				t.Fatalf("%d units were given before, want %d", s.before(p.at), n)
			}
		}
	})
}
