package gradient

import (
	"math"
	"testing"
)

// TestPlateau: intervals that do not fall by the rule's amount below the least before are
// counted, those that do begin the count again.
func TestPlateau(t *testing.T) {
	r, p := &PlateauRule{PlateauPatience: 3, PlateauFall: 0.1}, Plateau{Best: math.Inf(1)}
	for i, x := range []struct {
		loss  float64
		stale uint64
	}{{5, 0}, {4, 0}, {3.95, 1}, {3.89, 2}, {3.75, 0}, {3.75, 1}, {9, 2}, {3.66, 3}} {
		p.close(r) // without rows: nothing
		p.add(3, 3*x.loss+0.5)
		p.add(1, x.loss-0.5)
		p.close(r)
		if p.Stale != x.stale || p.over(r) != (x.stale == 3) {
			t.Errorf("interval %d: %+v, want %d stale ones", i, p, x.stale)
		}
	}
	if p.Stale = 1000; p.over(&PlateauRule{}) {
		t.Error("training ends without a rule")
	}
}
