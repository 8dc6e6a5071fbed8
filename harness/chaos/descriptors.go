package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/coppice-ldl/coppice/harness/chaos/system"
	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/internal/wait"
)

// noLimits says why a process cannot be given other limits; empty: it can.
func noLimits(*Config) string { return system.NoLimits() }

// fewDescriptors keeps a process from opening more files and connections than it has, and later
// allows as many as before.
func fewDescriptors(_ context.Context, s *strike) (func(context.Context) error, error) {
	n := pick(s, []*proc.Node{s.leader, s.follower(), s.worker()})
	s.on(n)
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", n.Pid()))
	if err != nil {
		return nil, err
	}
	before, err := limitDescriptors(n, uint64(len(open)))
	return func(ctx context.Context) error {
		err := wait.For(ctx, s.between(leastAlone, mostAlone))
		if !n.Running() {
			return fmt.Errorf("%w: %s ended when it could not open more files: %w", ErrFailed, n.Name, n.Err())
		}
		_, again := limitDescriptors(n, before)
		return errors.Join(err, again)
	}, err
}

// limitDescriptors sets how many files and connections a process may have, and returns
// how many it was before.
func limitDescriptors(n *proc.Node, most uint64) (before uint64, err error) {
	if before, err = system.LimitDescriptors(n.Pid(), most); err != nil {
		return 0, fmt.Errorf("the limits of %s cannot be changed: %w", n.Name, err)
	}
	return before, nil
}
