package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// RunGather computes one task of a gather round: it runs the task's sub-job if it has
// one, and calls the kernel's Collect otherwise.
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
