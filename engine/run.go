package engine

import (
	"fmt"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// RunTask computes one task of a reduce round into dst.
func RunTask(dst *round.Partial, k round.Kernel, u round.Task, d *dataset.Data, v round.Vars, cache *DerivedCache, scratch any) error {
	_, err := runTask(dst, k, u, d, v, cache, scratch)
	return err
}

// RunFinite is RunTask that returns the error of CheckFinite, which is ErrNonFinite, where dst is not finite. It
// takes no longer: large partials are not read once more for it.
func RunFinite(dst *round.Partial, k round.Kernel, u round.Task, d *dataset.Data, v round.Vars, cache *DerivedCache, scratch any) error {
	finite, err := runTask(dst, k, u, d, v, cache, scratch)
	if err != nil || finite && num.Finite64(dst.F64) {
		return err
	}
	return CheckFinite(dst)
}

// runUnit is RunTask that reports whether all float32 numbers are finite. It is the only caller of ReduceKernel.Run, in
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
	return canonical(dst), nil
}
