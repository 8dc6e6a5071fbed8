//go:build !amd64 || purego

package speed

// vectorSets returns the vectors that this package has assembly for: none.
func vectorSets() []vectors { return []vectors{portable} }

// features lists what of the processor matters here.
func features() []string { return nil }
