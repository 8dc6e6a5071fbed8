package dispatch

import (
	"testing"
	"time"
)

// TestWay: the longest way of a round counts, is forgotten slowly, is bounded, and is not
// taken from rounds whose units were given again.
func TestWay(t *testing.T) {
	const ms = time.Millisecond
	var w way
	round := func(again bool, answers ...time.Duration) {
		w.begin()
		for _, a := range answers {
			w.came(a, 10*ms)
		}
		w.again = again
		w.end(time.Second)
	}
	round(false, 20*ms, 310*ms, 50*ms)
	if w.longest != 300*ms {
		t.Fatalf("the way is %v, want 300ms", w.longest)
	}
	round(true, 900*ms)
	if w.longest != 300*ms {
		t.Errorf("after a round that was given again: %v", w.longest)
	}
	round(false, 20*ms)
	if w.longest >= 300*ms || w.longest < 280*ms {
		t.Errorf("after a fast round: %v", w.longest)
	}
	for range 200 {
		round(false, 20*ms)
	}
	if w.longest > 15*ms {
		t.Errorf("after many fast rounds: %v", w.longest)
	}
	round(false, time.Hour)
	if w.longest != time.Second {
		t.Errorf("after an hour: %v", w.longest)
	}
}
