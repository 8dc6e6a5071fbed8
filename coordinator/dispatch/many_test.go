package dispatch

import (
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

// TestUnitsAreSmall: a round may have a million units, and of those that nobody was given, or that are at hand,
// next to nothing is kept.
func TestUnitsAreSmall(t *testing.T) {
	if size := unsafe.Sizeof(unitState{}); size > 16 {
		t.Errorf("a unit takes %d bytes", size)
	}
	rapid.Check(t, func(t *rapid.T) {
		units := newUnits(rapid.IntRange(1, 5).Draw(t, "units"))
		given := make([]bool, len(units))
		for range rapid.IntRange(0, 20).Draw(t, "events") {
			u := rapid.IntRange(0, len(units)-1).Draw(t, "unit")
			s := &units[u]
			switch rapid.SampledFrom([]string{"give", "take", "forget", "clear"}).Draw(t, "event") {
			case "give":
				s.own().seats[0] = seat{worker: "w", of: new(worker)}
				s.own().tries++
				given[u] = true
			case "take":
				if given[u] {
					s.seats[0] = seat{}
				}
			case "forget":
				if s.forget(); s.seats[0].of == nil {
					given[u] = false
				}
			case "clear":
				clearUnits(units)
			}
			for u := range units {
				if s := &units[u]; given[u] != (s.attempt != &untried) {
					t.Fatalf("unit %d was given: %v; it has an attempt of its own: %v", u, given[u], s.attempt != &untried)
				}
			}
			if untried != (attempt{}) {
				t.Fatalf("what nobody was given has %+v", untried)
			}
		}
	})
}
