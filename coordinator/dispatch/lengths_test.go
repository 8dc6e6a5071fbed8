package dispatch

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/protocol"
)

// TestLengths: a unit takes as long as its group's, else as all, on average; the end of a round is
// where the longest unit would be waited for.
func TestLengths(t *testing.T) {
	l := newLengths([]int32{0, 1, 2, 0, 1, 2, 0, 1, 2})
	l.end(0, 2*time.Second)
	l.end(3, 4*time.Second)
	l.end(1, 30*time.Second)
	l.end(4, 0) // not known
	for u, want := range map[int]float64{6: 3, 7: 30, 8: 12} {
		if got := l.of(u); got != want {
			t.Errorf("unit %d is to take %v s, want %v", u, got, want)
		}
	}
	all := func(int) bool { return true }
	if l.isNear(all, 1) || !l.isNear(all, 3) || !l.isNear(func(u int) bool { return u >= 6 }, 1) {
		t.Error("the end is elsewhere")
	}
	if got := l.left(func(u int) bool { return u == 6 }, func(u int) bool { return u >= 7 }); got != 3+30/2+12/2 {
		t.Errorf("%v s are left", got)
	}
	l = newLengths([]int32{0, 1, 2, 1, 1})
	l.end(0, 4*time.Second)
	l.works(1, 20*time.Second)
	l.works(3, 3*time.Second)
	l.works(2, time.Second)
	for u, want := range map[int]float64{4: 40, 2: 4} {
		if got := l.of(u); got != want {
			t.Errorf("unit %d, of a group of which none has ended, is to take %v s, want %v", u, got, want)
		}
	}
	if newLengths(nil) != nil {
		t.Error("lengths without groups")
	}
	var none *lengths
	none.end(0, time.Second)
}

// TestLongUnitsFirst: near the end of a round the units of the group that takes longest are given
// out first; a unit that waits again has its place, and what is not near is in order.
func TestLongUnitsFirst(t *testing.T) {
	l := newLab(t, never)
	l.join("w", 2)
	x := l.executor(jobID)
	defer x.Close()
	x.r, x.units = collecting(9), newUnits(9)
	c := &collection{x: x, waits: newWaitList(9, func(u int) bool { return u > 0 }), lengths: newLengths([]int32{0, 1, 2, 0, 1, 2, 0, 1, 2})}
	order := func(now time.Time) (list []int) {
		c.order(now)
		c.waits.count(now)
		c.waits.each(func(u int, _ string) bool {
			list = append(list, u)
			return true
		})
		for _, u := range list {
			c.waits.add(u, "", time.Time{}, now)
		}
		return list
	}
	now := time.Unix(100, 0)
	c.lengths.end(0, 2*time.Second)
	if got := order(now); !slices.Equal(got, []int{1, 2, 3, 4, 5, 6, 7, 8}) {
		t.Errorf("far from the end: %v", got)
	}
	c.lengths.end(1, time.Second)
	c.lengths.end(2, 9*time.Second)
	c.waits.remove(2)
	c.waits.remove(5)
	if got := order(now.Add(time.Second)); !slices.Equal(got, []int{8, 3, 6, 1, 4, 7}) {
		t.Errorf("near the end: %v", got)
	}
	c.waits.remove(8)
	near := c.lengths.near
	c.lengths = newLengths(c.lengths.group)
	c.lengths.near = near
	c.lengths.end(0, time.Second)
	if got := order(now.Add(2 * time.Second)); !slices.Equal(got, []int{1, 3, 4, 6, 7}) {
		t.Errorf("of about the same length: %v", got)
	}
}

// TestSlotsWhileBeatsCome: the slots of workers are counted while beats tell of them.
func TestSlotsWhileBeatsCome(t *testing.T) {
	l, w, x := withOne(t, 1)
	x.r = collecting(1)
	c := &collection{x: x}
	ctx, stop := context.WithCancel(l.ctx())
	var counting sync.WaitGroup
	defer counting.Wait()
	defer stop()
	counting.Go(func() {
		for ctx.Err() == nil {
			if n := c.slots(); n != 1 {
				t.Errorf("%d slots, not 1", n)
				return
			}
		}
	})
	for range 20 {
		before := l.heard("w")
		w.beat(func(*protocol.Beat) {})
		l.until("a beat", func() bool { return l.heard("w").After(before) })
	}
}
