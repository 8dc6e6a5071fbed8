package engine

import (
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
)

// RunUnit computes one unit of a Sum round into dst. It is the only caller of Kernel.Run, in
// this process and on workers.
func RunUnit(dst *algorithms.Partial, k algorithms.Kernel, u algorithms.Unit, d *dataset.Data, v algorithms.Vars, cache *DerivedCache, scratch any) error {
	value, err := cache.get(k, u, d, v, scratch)
	if err != nil {
		return fmt.Errorf("unit %d: %w", u.ID, err)
	}
	defer release(value)
	if err := k.Run(dst, u, d, v, value, scratch); err != nil {
		return fmt.Errorf("unit %d: %w", u.ID, err)
	}
	canonical(dst)
	return nil
}
