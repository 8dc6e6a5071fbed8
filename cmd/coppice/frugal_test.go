package main

import (
	"runtime/debug"
	"testing"
)

// TestLean: garbage is low while at least one job wants it so, and as before afterwards; an end counts once.
func TestLean(t *testing.T) {
	t.Setenv("GOGC", "")
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	percent := func() int {
		now := debug.SetGCPercent(100)
		debug.SetGCPercent(now)
		return now
	}
	var l lean
	first, second := l.begin(), l.begin()
	first()
	first()
	if percent() != leanPercent {
		t.Errorf("%d %% with one job", percent())
	}
	second()
	if percent() != 100 {
		t.Errorf("%d %% without any", percent())
	}
	t.Setenv("GOGC", "70")
	defer l.begin()()
	if percent() != 100 {
		t.Errorf("%d %% where GOGC is given", percent())
	}
}
