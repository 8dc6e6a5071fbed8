package dispatch

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// slowList is a waitList that looks at all units each time.
type slowList struct {
	waits []bool
	after []time.Time
	avoid []string
	rank  []float64 // nil: there is none
}

func (s *slowList) count(now time.Time) (n int) {
	for u := range s.waits {
		if s.waits[u] && !now.Before(s.after[u]) {
			n++
		}
	}
	return n
}

// feed lists the units that are given out, in order: to workers with so much room each, who are
// asked as the collection's feed asks.
func (s *slowList) feed(now time.Time, room map[string]int) (given []int) {
	for _, u := range s.order() {
		if !s.waits[u] || now.Before(s.after[u]) {
			continue
		}
		w := reserveOf(room, s.avoid[u])
		if w == "" && s.avoid[u] != "" {
			continue
		}
		if w == "" {
			break
		}
		s.waits[u] = false
		given = append(given, u)
	}
	return given
}

// order lists all units in the order in which they are given out.
func (s *slowList) order() (list []int) {
	for u := range s.waits {
		list = append(list, u)
	}
	if s.rank != nil {
		slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(s.rank[b], s.rank[a]) })
	}
	return list
}

// reserveOf takes room of the worker with most of it, but for one to avoid, where there is another.
func reserveOf(room map[string]int, avoid string) (best string) {
	for _, id := range []string{"a", "b", "c"} {
		n, there := room[id]
		if !there || id == avoid && len(room) > 1 {
			continue
		}
		if n > 0 && (best == "" || n > room[best]) {
			best = id
		}
	}
	if best != "" {
		room[best]--
	}
	return best
}

// TestWaitList: units are given out in the order, and counted, as by a look at all of them: that of
// the greatest rank first, then the lowest, none before its time, and none that would go to the worker that it avoids.
func TestWaitList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "units")
		slow := &slowList{make([]bool, n), make([]time.Time, n), make([]string, n), nil}
		for u := range n {
			slow.waits[u] = rapid.Bool().Draw(t, "waits")
		}
		w := newWaitList(n, func(u int) bool { return slow.waits[u] })
		now := time.Unix(100, 0)
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			u := rapid.IntRange(0, n-1).Draw(t, "unit")
			switch rapid.IntRange(0, 5).Draw(t, "event") {
			case 5:
				slow.rank = nil
				w.reorder(nil)
				if rapid.Bool().Draw(t, "ranked") {
					slow.rank = rapid.SliceOfN(rapid.Float64Range(0, 3), n, n).Draw(t, "ranks")
					w.reorder(func(u int) float64 { return slow.rank[u] })
				}
			case 0:
				slow.waits[u] = false
				w.remove(u)
			case 1, 2:
				slow.waits[u], slow.avoid[u] = true, rapid.SampledFrom([]string{"", "a", "b", "gone"}).Draw(t, "avoids")
				slow.after[u] = now.Add(time.Duration(rapid.IntRange(-1, 3).Draw(t, "rests")) * time.Second)
				w.add(u, slow.avoid[u], slow.after[u], now)
			case 3:
				now = now.Add(time.Duration(rapid.IntRange(0, 2).Draw(t, "pass")) * time.Second)
			case 4:
				checkFeed(t, w, slow, now)
			}
			if got, want := w.count(now), slow.count(now); got != want {
				t.Fatalf("%d units wait, want %d", got, want)
			}
		}
	})
}

func checkFeed(t *rapid.T, w *waitList, slow *slowList, now time.Time) {
	room, other := make(map[string]int), make(map[string]int)
	for _, id := range []string{"a", "b", "c"}[:rapid.IntRange(0, 3).Draw(t, "workers")] {
		room[id] = rapid.IntRange(0, 8).Draw(t, "room")
		other[id] = room[id]
	}
	var given []int
	w.count(now)
	w.each(func(u int, avoid string) bool {
		if reserveOf(room, avoid) == "" {
			return false
		}
		given = append(given, u)
		return true
	})
	want := slow.feed(now, other)
	if len(given) != len(want) {
		t.Fatalf("%v were given out, want %v", given, want)
	}
	for i := range want {
		if given[i] != want[i] {
			t.Fatalf("%v were given out, want %v", given, want)
		}
	}
}
