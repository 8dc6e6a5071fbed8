//go:build race

package testkit

import "testing"

// Race says whether the race detector is on.
const Race = true

// WithoutRace skips a test where the race detector is on: one goroutine computes in it, other tests
// run its goroutines with the detector, or what it measures is other memory then. CI runs such tests
// without the detector as well: only functions named Test may call it.
func WithoutRace(t testing.TB) {
	t.Helper()
	t.Skip("the race detector finds nothing in it, and makes it several times as long")
}
