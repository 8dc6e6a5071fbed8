package round

import (
	"context"

	"github.com/coppice-ldl/coppice/dataset"
)

// Kernel is the half of an algorithm that runs on workers. It is a pure function: the same
// task gives the same bytes on every machine. A kernel whose trainer asks for reduce rounds
// is a ReduceKernel, one whose trainer asks for gather rounds is a GatherKernel; a kernel
// may be both. Tasks may be computed concurrently, each with a scratch of its own.
type Kernel interface {
	// NewScratch makes the working memory of one lane, which computes one task at a time.
	NewScratch() any
}

// ReduceKernel computes the tasks of rounds that are summed.
type ReduceKernel interface {
	Kernel
	// Derive computes the task's derived value. The engine may cache the value, and passes
	// it to every Run of that task with the same DerivedVersion. Derive is called only when
	// Round.DerivedVersion is not 0. A nil value is not cached: Run then gets nil.
	Derive(u Task, d *dataset.Data, v Vars, scratch any) (Derived, error)
	// Run computes the task into dst. The slices of dst have the lengths of Round.Shape,
	// and their elements are 0. derived is the result of Derive, or nil.
	Run(dst *Partial, u Task, d *dataset.Data, v Vars, derived Derived, scratch any) error
}

// GatherKernel computes the tasks of rounds that are collected.
type GatherKernel interface {
	Kernel
	// Gather computes the task's result as bytes. When ctx is done, Collect stops and
	// returns the error of ctx.
	Gather(ctx context.Context, u Task, d *dataset.Data, v Vars, scratch any) ([]byte, error)
}

// MemoryReleaser is implemented by Kernels that keep much memory between tasks.
// ReleaseMemory frees the memory that no running task uses. It may be called several times
// after training.
type MemoryReleaser interface{ ReleaseMemory() }

// Demanding is implemented by Kernels whose tasks on the whole dataset may need far more memory
// than the dataset: matrices between all rows. Demand returns the most that such a task takes, in
// bytes, and what it takes them for; 0: no more than others.
type Demanding interface {
	Demand() (bytes int64, what string)
}

// Derived is a value that Derive makes for a task. It counts its references: Derive returns
// it with one, Retain adds one and Release takes one away. When no reference is left, the
// kernel may use the memory of the value for another one.
type Derived interface {
	Bytes() int // the size that a cache counts for the value
	Retain()
	Release()
}

// Unpooled is embedded by Derived values whose memory is left to the garbage collector: their
// references need no count.
type Unpooled struct{}

// Retain implements Derived.
func (Unpooled) Retain() {}

// Release implements Derived.
func (Unpooled) Release() {}
