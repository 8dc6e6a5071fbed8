//go:build !race

package testkit

import "testing"

// Race says whether the race detector is on.
const Race = false

// Slowdown is 1 without the race detector.
const Slowdown = 1

// WithoutRace skips nothing without the race detector.
func WithoutRace(testing.TB) {}
