//go:build race

package ldlf

// slowed says that the race detector is on: tests that take seconds are left out.
const slowed = true
