//go:build !amd64 || purego

package ndf

// switchVectors does nothing: there are no vector instructions.
func switchVectors(bool) bool { return false }
