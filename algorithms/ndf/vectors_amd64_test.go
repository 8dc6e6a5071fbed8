//go:build !purego

package ndf

// switchVectors turns vector instructions on or off, and returns what they were.
func switchVectors(on bool) (before bool) {
	before, accelerated = accelerated, on
	return before
}
