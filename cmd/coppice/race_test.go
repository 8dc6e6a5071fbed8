//go:build race

package main

import "testing"

// raced skips a test that takes minutes, or measures memory, where the race detector is on:
// without it go test runs it.
func raced(t *testing.T) {
	t.Helper()
	t.Skip("it takes too long, or too much memory, with the race detector")
}
