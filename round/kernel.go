package round

import (
	"context"

	"github.com/coppice-ldl/coppice/dataset"
)

// Kernel is the workers' half of an algorithm, a pure function: the same unit gives the
// same bytes anywhere. A kernel is a SumKernel, a CollectKernel or both, by the rounds that
// its trainer asks for. Units may be computed concurrently, each with a scratch of its own.
type Kernel interface {
	// NewScratch makes the working memory of one lane.
	NewScratch() any
}

// SumKernel computes the units of rounds that are summed.
type SumKernel interface {
	Kernel
	// Derive computes the unit's derived value, which the engine may cache and hands
	// to every Run of that unit with the same DerivedVersion. It is called only when
	// DerivedVersion is not 0. A nil value is not cached: Run computes without it.
	Derive(u Unit, d *dataset.Data, v Vars, scratch any) (Derived, error)
	// Run computes the unit into dst, whose slices have the lengths of Round.Shape and
	// are zero. derived is the result of Derive, or nil.
	Run(dst *Partial, u Unit, d *dataset.Data, v Vars, derived Derived, scratch any) error
}

// CollectKernel computes the units of rounds that are collected.
type CollectKernel interface {
	Kernel
	// Collect computes the unit's bytes. It returns early, with ctx's error, when ctx
	// is done.
	Collect(ctx context.Context, u Unit, d *dataset.Data, v Vars, scratch any) ([]byte, error)
}

// MemoryReleaser is implemented by Kernels that keep much memory between units.
// ReleaseMemory frees what no running unit uses. It is called, more than once, after
// training.
type MemoryReleaser interface{ ReleaseMemory() }

// Derived is a value that Derive makes for a unit. Derive returns it with one reference; the
// Release of the last reference frees its memory for reuse.
type Derived interface {
	Bytes() int // size, as a cache counts it
	Retain()
	Release()
}

// Unpooled is embedded by Derived values whose memory nobody reuses.
type Unpooled struct{}

// Retain implements Derived.
func (Unpooled) Retain() {}

// Release implements Derived.
func (Unpooled) Release() {}
