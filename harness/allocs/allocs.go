// Package allocs measures what functions allocate, for tests that hold decoders
// to the bounds in docs/dev/decoders.md.
package allocs

import (
	"runtime"
	"testing"
)

// Of returns the bytes that f allocates, those that it gives back included. What
// other goroutines allocate meanwhile counts as well.
func Of(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// AtMost runs f and fails the test where it allocates more than most bytes; what
// names what was being read.
func AtMost(t testing.TB, most int, what string, f func()) {
	t.Helper()
	if n := Of(f); n > uint64(most) {
		t.Fatalf("%s: %d bytes were allocated, want at most %d", what, n, most)
	}
}
