//go:build !race

package cmdtest

// raceFree runs the tests. Without the race detector, no process reports data races.
func raceFree(run func() int) int { return run() }
