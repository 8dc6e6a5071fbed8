package rtt

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The mean stays within what was seen, a steady round trip is found, and after a change
// the new one is.
func TestEstimate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var e Estimate
		low, high := time.Hour, time.Duration(0)
		for _, ms := range rapid.SliceOfN(rapid.IntRange(1, 1000), 1, 50).Draw(t, "ms") {
			d := time.Duration(ms) * time.Millisecond
			low, high = min(low, d), max(high, d)
			e.Add(d)
			if e.Mean < low || e.Mean > high || e.Deviation < 0 || e.Late() < e.Mean {
				t.Fatalf("%+v of samples from %v to %v", e, low, high)
			}
		}
		steady := time.Duration(rapid.IntRange(1, 1000).Draw(t, "steady")) * time.Millisecond
		for range 100 {
			e.Add(steady)
		}
		if off := (e.Mean - steady).Abs(); off > steady/50+time.Millisecond {
			t.Fatalf("after 100 samples of %v the mean is %v", steady, e.Mean)
		}
		before := e
		e.Add(0)
		e.Add(-time.Second)
		if e != before {
			t.Fatalf("what is no round trip changed %+v to %+v", before, e)
		}
	})
}

func TestTableForgets(t *testing.T) {
	var table Table
	table.Add("a", 20*time.Millisecond)
	if got := table.Since(time.Hour); len(got) != 1 || got["a"].Mean != 20*time.Millisecond {
		t.Errorf("%v", got)
	}
	if got := table.Since(-time.Nanosecond); len(got) != 0 { // less than no time ago
		t.Errorf("a peer that is not heard any more is still there: %v", got)
	}
	if got := table.Since(time.Hour); len(got) != 0 {
		t.Errorf("%v", got)
	}
}
