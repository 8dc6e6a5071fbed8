package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// RunCollected computes one unit of a Collect round: it runs the unit's child job if it has
// one, and calls the kernel's Collect otherwise.
func RunCollected(ctx context.Context, k round.Kernel, u round.Unit, d *dataset.Data, v round.Vars, child ChildRunner, scratch any) ([]byte, error) {
	if u.Child != nil {
		result, err := child(ctx, u.Child)
		if err != nil {
			return nil, fmt.Errorf("task %d: %w", u.ID, err)
		}
		return result, nil
	}
	c, ok := k.(round.CollectKernel)
	if !ok {
		return nil, errors.New("the algorithm has no tasks whose results are gathered")
	}
	result, err := c.Collect(ctx, u, d, v, scratch)
	if err != nil {
		return nil, fmt.Errorf("task %d: %w", u.ID, err)
	}
	return result, nil
}
