//go:build race

package testkit

// Race says whether the race detector is on.
const Race = true

// Slowdown is about how many times longer a training step takes with the race detector. A job that must run while
// something happens to it has as many fewer steps.
const Slowdown = 4
