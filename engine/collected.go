package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
)

// Collector is implemented by kernels whose rounds are collected: each unit gives bytes of
// its own, such as a tree.
type Collector interface {
	// Collect computes the unit's bytes; the same unit gives the same bytes
	// anywhere. It returns early, with ctx's error, when ctx is done.
	Collect(ctx context.Context, u algorithms.Unit, d *dataset.Data, v algorithms.Vars, scratch any) ([]byte, error)
}

// RunCollected computes one unit of a Collect round: it runs the unit's child job if it has
// one, and calls the kernel's Collect otherwise.
func RunCollected(ctx context.Context, k algorithms.Kernel, u algorithms.Unit, d *dataset.Data, v algorithms.Vars, child ChildRunner, scratch any) ([]byte, error) {
	if u.Child != nil {
		result, err := child(ctx, u.Child)
		if err != nil {
			return nil, fmt.Errorf("unit %d: %w", u.ID, err)
		}
		return result, nil
	}
	c, ok := k.(Collector)
	if !ok {
		return nil, errors.New("the algorithm collects nothing")
	}
	result, err := c.Collect(ctx, u, d, v, scratch)
	if err != nil {
		return nil, fmt.Errorf("unit %d: %w", u.ID, err)
	}
	return result, nil
}
