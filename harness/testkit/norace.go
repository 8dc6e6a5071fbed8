//go:build !race

package testkit

import "testing"

// Race says whether the race detector is on.
const Race = false

// WithoutRace skips nothing without the race detector.
func WithoutRace(testing.TB) {}
