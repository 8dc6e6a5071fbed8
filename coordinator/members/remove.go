package members

import (
	"context"
	"fmt"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/protocol"
)

// Remove takes a member out of the cluster, whether it lives or not. It refuses
// where the voters that stay would lack a majority that answers and has all blobs.
// This coordinator, the leader, hands over first: the error is then
// store.ErrNotLeader, and the next leader is to be asked.
func (s *Service) Remove(ctx context.Context, id string) (protocol.Members, error) {
	end, err := s.begin(ctx)
	if err != nil {
		return protocol.Members{}, err
	}
	defer end()
	now := s.List(ctx)
	m := find(now.Members, id)
	if m == nil {
		return now, s.forget(ctx, id, &now)
	}
	left := voters(now.Members, id)
	if m.Role != protocol.RoleNonvoter || len(left) < len(voters(now.Members, "")) {
		if err := checkRemove(now.Members, left, id); err != nil {
			return now, err
		}
	}
	if id == s.Self().ID {
		if err := s.handOver(ctx, successor(left)); err != nil {
			return now, err
		}
		return now, fmt.Errorf("%s transfers the leadership before it is removed: %w", id, &store.NotLeaderError{})
	}
	s.Logger.Info("a coordinator is removed", "id", id)
	for _, one := range s.Log.Members() {
		if one.ID != id {
			continue
		}
		if err := s.Log.Remove(ctx, one.Server); err != nil {
			return now, err
		}
	}
	if err := s.propose(ctx, protocol.EntryMemberRemove, protocol.MemberRemoveEntry{ID: id}); err != nil {
		return now, err // Tend does it
	}
	now = s.List(ctx)
	now.Warning = warn(len(left))
	return now, nil
}

// forget clears what is left of a member that is out of the cluster already.
func (s *Service) forget(ctx context.Context, id string, now *protocol.Members) error {
	if _, known := s.Log.State().Member(id); known {
		return s.propose(ctx, protocol.EntryMemberRemove, protocol.MemberRemoveEntry{ID: id})
	}
	return fmt.Errorf("%w: there is no coordinator %q; the members are %s", state.ErrNotFound, id, names(now.Members))
}

func checkRemove(all, left []protocol.Member, id string) error {
	if len(left) == 0 {
		return refused("%s is the only coordinator with a vote", id)
	}
	if m := nonvoter(all, id); m != nil {
		return refused("coordinator %s is still being added; wait until it votes, or remove it first", m.ID)
	}
	return checkLeft(left, "removing "+id)
}

// Transfer hands the leadership over to a voter; empty: to any. Handing over to
// this coordinator changes nothing. It gives up after a bound, and then this
// coordinator leads on.
func (s *Service) Transfer(ctx context.Context, to string) error {
	end, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	now := s.List(ctx)
	if to == s.Self().ID {
		return nil
	}
	others := voters(now.Members, s.Self().ID)
	if to == "" && len(others) == 0 {
		return refused("%s is the only coordinator with a vote", s.Self().ID)
	}
	if to != "" {
		m := find(now.Members, to)
		switch {
		case m == nil:
			return fmt.Errorf("%w: there is no coordinator %q; the members are %s", state.ErrNotFound, to, names(now.Members))
		case m.Role == protocol.RoleNonvoter:
			return refused("%s has no vote yet", to)
		case !m.Alive:
			return refused("%s does not answer: %s", to, m.Problem)
		case m.Missing > m.Lost && m.MissingFor >= onTheirWay:
			return refused("%s lacks %s: wait until it has fetched them (coppice cluster members)", to, blobsOf(m.Missing))
		}
	} else {
		to = successor(others)
	}
	return s.handOver(ctx, to)
}

// The bounds of a handover: a try may fail because entries are written meanwhile.
const (
	transferTries = 5
	transferPause = 50 * time.Millisecond
)

// handOver tries a few times. Each try is bounded, and Raft is started anew where
// it hangs in one.
func (s *Service) handOver(ctx context.Context, to string) error {
	var err error
	for range transferTries {
		if err = s.Log.HandOver(ctx, to); err == nil || ctx.Err() != nil || !s.Log.IsLeader() {
			break
		}
		wait.For(ctx, transferPause)
	}
	if err != nil && ctx.Err() == nil && s.Log.IsLeader() {
		return refused("no other coordinator took over, so %s remains the leader: %v", s.Self().ID, err)
	}
	return err
}
