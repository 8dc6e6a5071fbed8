//go:build !race

package main

import "testing"

// slowdown is 1 without the race detector.
const slowdown = 1

// raced skips nothing without the race detector.
func raced(*testing.T) {}

// raceFree runs the tests: without the race detector no process tells of data races.
func raceFree(run func() int) int { return run() }
