//go:build race

package testkit

import "testing"

// Race says whether the race detector is on.
const Race = true

// Slowdown is about how many times longer a training step takes with the race detector. A job that must run while
// something happens to it has as many fewer steps.
const Slowdown = 4

// WithoutRace skips a test if the race detector is on: one goroutine computes in it, other tests run its goroutines with
// the detector, it takes too long, or it measures memory. Without the detector, every test runs.
func WithoutRace(t testing.TB) {
	t.Helper()
	t.Skip("the race detector finds nothing in it, and makes it several times as long")
}
