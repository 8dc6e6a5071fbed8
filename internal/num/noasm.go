//go:build !amd64 || purego

package num

// This build has no vectors: the portable loops do everything. Accelerated is a constant, so that the compiler leaves
// out the calls of assembly, which this build does not have.
const (
	Accelerated = false
	wide        = false
)
