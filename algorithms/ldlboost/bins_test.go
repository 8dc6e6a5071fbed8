package ldlboost

import (
	"math"
	"testing"
)

// TestBetween: no float32 lies between neighbours, so the cut is the upper one.
func TestBetween(t *testing.T) {
	low, high := float32(1), math.Float32frombits(math.Float32bits(1)+1)
	if got := between(low, high); got != high {
		t.Errorf("between neighbours: %v", got)
	}
}
