//go:build !race

package main

import "testing"

// raced skips nothing without the race detector.
func raced(*testing.T) {}
