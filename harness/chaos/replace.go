package chaos

import (
	"context"
	"errors"
	"fmt"

	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/protocol"
)

// replaceMember replaces a coordinator by one of another id at the same address, as the
// documentation says, and starts the others again, whose --peers have the old id.
func replaceMember(ctx context.Context, s *strike) (func(context.Context) error, error) {
	old := s.follower()
	others := s.followers(old)
	if err := old.Kill(); err != nil {
		return nil, err
	}
	if _, err := s.client.Members().Remove(ctx, old.Name); err != nil {
		return nil, fmt.Errorf("removing %s: %w", old.Name, err)
	}
	n, err := s.cluster.ReplaceCoordinator(old)
	if err != nil {
		return nil, err
	}
	if err := s.member(ctx, n); err != nil {
		return nil, err
	}
	err = s.killFor(ctx, others)
	s.target = old.Name + " by " + n.Name
	return nil, err
}

// member adds a coordinator that was started and waits until it votes.
func (s *strike) member(ctx context.Context, n *proc.Node) error {
	request := protocol.AddRequest{ID: n.Name, HTTP: s.cluster.HTTP(n)}
	m, err := s.client.Members().Add(ctx, request)
	for err != nil || !votes(m, n.Name) {
		if wait.For(ctx, lookPause) != nil {
			return fmt.Errorf("%s has no vote: %w", n.Name, errors.Join(context.Cause(ctx), err))
		}
		if err != nil { // it may not have been up yet
			m, err = s.client.Members().Add(ctx, request)
		} else {
			m, err = s.client.Members().List(ctx)
		}
	}
	return nil
}

func votes(m *protocol.Members, id string) bool {
	for _, one := range m.Members {
		if one.ID == id && one.Role == protocol.RoleVoter {
			return true
		}
	}
	return false
}
