package chaos

import (
	"context"
	"errors"
	"fmt"

	"github.com/coppice-ldl/coppice/harness/chaos/system"
	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/internal/wait"
)

// ioErrors shuts the disk of a coordinator, the leader among them, or of a worker down.
// What is imported meanwhile must be acknowledged, and be there later; the process is
// started again once its disk is well.
func ioErrors(_ context.Context, s *strike) (func(context.Context) error, error) {
	n := pick(s, []*proc.Node{s.leader, s.follower(), s.worker()})
	name := fmt.Sprintf("beside-%08x", s.rng.Uint32())
	away := s.between(leastAlone, mostAlone)
	s.on(n)
	return func(ctx context.Context) error {
		if err := wait.For(ctx, away); err != nil {
			return err
		}
		if err := s.keep(ctx, name); err != nil {
			return fmt.Errorf("the disk of %s has errors: %w", n.Name, err)
		}
		if err := errors.Join(n.Kill(), s.mendDisk(n), n.Restart()); err != nil {
			return err
		}
		return s.kept(ctx, name)
	}, system.ShutDown(n.Dir)
}

// mendDisk mounts the disk of a process again, which must not run.
func (r *rig) mendDisk(n *proc.Node) error {
	if err := unmountDisk(n.Dir); err != nil {
		return err
	}
	return mountBlockDisk(r.image(n.Name), n.Dir)
}
