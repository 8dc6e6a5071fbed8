package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// RunTask computes one task of a reduce round into dst.
func RunTask(dst *round.Partial, k round.Kernel, u round.Task, d *dataset.Data, v round.Vars, cache *DerivedCache, scratch any) error {
	_, err := runTask(dst, k, u, d, v, cache, scratch)
	return err
}

// RunFinite is RunTask that returns the error of CheckFinite if dst is not finite. It takes no longer: large partials are
// not read once more for it.
func RunFinite(dst *round.Partial, k round.Kernel, u round.Task, d *dataset.Data, v round.Vars, cache *DerivedCache, scratch any) error {
	finite, err := runTask(dst, k, u, d, v, cache, scratch)
	if err != nil || finite && num.Finite64(dst.F64) {
		return err
	}
	return CheckFinite(dst)
}

// runTask is RunTask that reports whether all float32 numbers are finite. It is the only caller of ReduceKernel.Run, in
// this process and on workers.
func runTask(dst *round.Partial, k round.Kernel, u round.Task, d *dataset.Data, v round.Vars, cache *DerivedCache, scratch any) (finite bool, err error) {
	s, ok := k.(round.ReduceKernel)
	if !ok {
		return false, fmt.Errorf("task %d: the algorithm has no tasks whose results are summed", u.ID)
	}
	value, err := cache.get(s, u, d, v, scratch)
	if err != nil {
		return false, fmt.Errorf("task %d: %w", u.ID, err)
	}
	if value != nil {
		defer value.Release()
	}
	if err := s.Run(dst, u, d, v, value, scratch); err != nil {
		return false, fmt.Errorf("task %d: %w", u.ID, err)
	}
	// -0 becomes +0. Dense partials, row-sparse partials and absent rows then add up to the same bits (design section 8.4).
	num.Canonical64(dst.F64)
	finite = num.Canonical32(dst.F32)
	return num.Canonical32(dst.Values) && finite, nil
}

// RunGather computes one task of a gather round: it runs the task's sub-job if it has
// one, and calls the kernel's Gather otherwise.
func RunGather(ctx context.Context, k round.Kernel, u round.Task, d *dataset.Data, v round.Vars, child SubJobRunner, scratch any) ([]byte, error) {
	if u.SubJob != nil {
		result, err := child(ctx, u.SubJob)
		if err != nil {
			return nil, fmt.Errorf("task %d: %w", u.ID, err)
		}
		return result, nil
	}
	c, ok := k.(round.GatherKernel)
	if !ok {
		return nil, errors.New("the algorithm has no tasks whose results are gathered")
	}
	result, err := c.Gather(ctx, u, d, v, scratch)
	if err != nil {
		return nil, fmt.Errorf("task %d: %w", u.ID, err)
	}
	return result, nil
}

// ErrNonFinite is what errors of CheckFinite are.
var ErrNonFinite = errors.New("a partial result is not finite")

// CheckFinite returns an error, which is ErrNonFinite, that names the first number of p that is NaN or
// infinite, or nil. The cause is bad memory on the machine, or training that diverges;
// a second machine's result tells which.
func CheckFinite(p *round.Partial) error {
	if i := firstNonFinite(p.F64); i >= 0 {
		return nonFinite("float64 value", i, p.F64[i])
	}
	if i := firstNonFinite(p.F32); i >= 0 {
		return nonFinite("float32 value", i, float64(p.F32[i]))
	}
	if i := firstNonFinite(p.Values); i >= 0 {
		return nonFinite("value of a sparse row", i, float64(p.Values[i]))
	}
	return nil
}

func nonFinite(what string, i int, v float64) error {
	name := "infinite"
	if math.IsNaN(v) {
		name = "NaN"
	}
	return fmt.Errorf("%w: %s %d is %s", ErrNonFinite, what, i, name)
}

// firstNonFinite returns the position of the first value that is NaN or infinite,
// or -1.
func firstNonFinite[T float32 | float64](v []T) int {
	for i, x := range v {
		if x-x != 0 {
			return i
		}
	}
	return -1
}

// Panic is the error that Guard makes of an algorithm's panic.
type Panic struct {
	Doing string // what panicked, such as "computing the task"
	Value any    // what it panicked with
	Stack []byte // of the goroutine that panicked
}

// Error implements error, without the stack.
func (p *Panic) Error() string { return fmt.Sprintf("%s panicked: %v", p.Doing, p.Value) }

// Unwrap returns Value if it is an error, such as a runtime.Error.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// Guard, deferred, turns a panic into a *Panic in *err: the algorithm's job fails, and the
// process goes on. A goroutine guards itself; its callers cannot.
func Guard(err *error, doing string) {
	if r := recover(); r != nil {
		*err = &Panic{Doing: doing, Value: r, Stack: debug.Stack()}
	}
}

// PanicStack returns the stack of the panic that err comes from; "": it comes from none.
func PanicStack(err error) string {
	var p *Panic
	if errors.As(err, &p) {
		return string(p.Stack)
	}
	return ""
}
