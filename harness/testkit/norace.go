//go:build !race

package testkit

// Race says whether the race detector is on.
const Race = false

// Slowdown is 1 without the race detector.
const Slowdown = 1
