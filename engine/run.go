package engine

import (
	"fmt"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/round"
)

// RunUnit computes one unit of a Sum round into dst. It is the only caller of SumKernel.Run, in
// this process and on workers.
func RunUnit(dst *round.Partial, k round.Kernel, u round.Unit, d *dataset.Data, v round.Vars, cache *DerivedCache, scratch any) error {
	s, ok := k.(round.SumKernel)
	if !ok {
		return fmt.Errorf("unit %d: the algorithm sums nothing", u.ID)
	}
	value, err := cache.get(s, u, d, v, scratch)
	if err != nil {
		return fmt.Errorf("unit %d: %w", u.ID, err)
	}
	if value != nil {
		defer value.Release()
	}
	if err := s.Run(dst, u, d, v, value, scratch); err != nil {
		return fmt.Errorf("unit %d: %w", u.ID, err)
	}
	canonical(dst)
	return nil
}
