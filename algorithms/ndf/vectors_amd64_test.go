//go:build !purego

package ndf

import "github.com/coppice-ldl/coppice/internal/num"

// switchVectors turns vector instructions on or off, and returns what they were.
func switchVectors(on bool) (before bool) {
	before, num.Accelerated = num.Accelerated, on
	return before
}
