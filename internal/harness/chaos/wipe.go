package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/harness/proc"
)

// How long a coordinator that forgot and one that lags behind are alone: several
// elections.
const (
	leastAlone = time.Second
	mostAlone  = 2 * time.Second
)

// wiping empties the folder of a follower, or a part of it, while the other follower
// lags behind: what was acknowledged meanwhile is on the leader's disk only, which is
// down. The two must not go on without it.
func wiping(part string) hit {
	return func(ctx context.Context, s *strike) (func(context.Context) error, error) {
		followers := s.followers(s.leader)
		i := s.rng.IntN(len(followers))
		wiped, late := followers[i], followers[1-i]
		name := fmt.Sprintf("kept-%08x", s.rng.Uint32())
		if err := late.Kill(); err != nil {
			return nil, err
		}
		if _, err := s.client.Import(ctx, name, dataset.Artificial(64, 1), dataset.ImportOptions{}); err != nil {
			return nil, fmt.Errorf("importing %s while a follower is down: %w", name, err)
		}
		err := s.wipe(wiped, part)
		err = errors.Join(err, wiped.Restart(), late.Restart(), sleep(ctx, s.between(leastAlone, mostAlone)))
		s.on(wiped)
		if err = errors.Join(err, s.leader.Restart()); err != nil {
			return nil, err
		}
		return func(ctx context.Context) error { return s.kept(ctx, name) }, nil
	}
}

// wipe kills the leader and a follower and removes what the follower has.
func (s *strike) wipe(n *proc.Node, part string) error {
	return errors.Join(s.leader.Kill(), n.Kill(), os.RemoveAll(filepath.Join(n.Dir, part)))
}

// kept waits until every coordinator has all blobs again, and checks that a dataset
// that was acknowledged is there.
func (s *strike) kept(ctx context.Context, name string) error {
	if _, err := s.client.Dataset(ctx, name); err != nil {
		return fmt.Errorf("%w: dataset %s was acknowledged: %w", ErrFailed, name, err)
	}
	for {
		whole := 0
		m, err := s.client.Members(ctx)
		if err == nil {
			for _, one := range m.Members {
				if one.Alive && one.Missing == 0 && one.Problem == "" {
					whole++
				}
			}
		}
		if whole == coordinators {
			return nil
		}
		if sleep(ctx, lookPause) != nil {
			return fmt.Errorf("%d of %d coordinators have all blobs: %w", whole, coordinators, errors.Join(context.Cause(ctx), err))
		}
	}
}
