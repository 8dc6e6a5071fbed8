package garbage

import (
	"runtime/debug"
	"testing"
)

// TestGarbage: the percentage is low while at least one user has begun, and as before afterwards; an end counts once.
func TestGarbage(t *testing.T) {
	t.Setenv("GOGC", "")
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	percent := func() int {
		now := debug.SetGCPercent(100)
		debug.SetGCPercent(now)
		return now
	}
	l := &Limit{percent: 5, floor: 1 << 20}
	first, second := l.Begin(), l.Begin()
	first()
	first()
	if percent() != l.percent {
		t.Errorf("%d %% with one job", percent())
	}
	second()
	if percent() != 100 {
		t.Errorf("%d %% without any", percent())
	}
	t.Setenv("GOGC", "70")
	defer l.Begin()()
	if percent() != 100 {
		t.Errorf("%d %% where GOGC is given", percent())
	}
}
