package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/hashicorp/raft"
)

// Member is one server of the cluster, as the log's configuration has it.
type Member struct {
	Server
	Voter bool // true if it votes; a nonvoter receives the log, and does not count
}

// Members lists the members by coordinator, from the latest configuration in the log here:
// on the leader the one in force. It is empty on a node that has joined no cluster
// yet. While a coordinator with a new folder catches up, it is listed twice.
func (s *Store) Members() []Member {
	var list []Member
	for _, m := range s.raft().GetConfiguration().Configuration().Servers {
		list = append(list, Member{parseServer(m.ID, m.Address), m.Suffrage == raft.Voter})
	}
	slices.SortFunc(list, func(a, b Member) int {
		return cmp.Or(strings.Compare(a.ID, b.ID), strings.Compare(a.Directory, b.Directory))
	})
	return list
}

// Votes reports whether this node votes, according to its log.
func (s *Store) Votes() bool {
	return slices.ContainsFunc(s.Members(), func(m Member) bool { return m.Voter && m.ID == s.self.ID && m.Directory == s.self.Directory })
}

// voters counts the members that vote.
func (s *Store) voters() (n int) {
	for _, m := range s.Members() {
		if m.Voter {
			n++
		}
	}
	return n
}

// AddNonvoter makes a node a member that receives the log and does not vote. On
// the leader only; it returns once the change is committed. While another change
// is under way it waits. Errors: as of Propose.
func (s *Store) AddNonvoter(ctx context.Context, m Server) error {
	return s.change(ctx, func() raft.IndexFuture {
		return s.raft().AddNonvoter(m.raftID(), m.address(), 0, s.config.patience())
	})
}

// Promote lets a nonvoter vote: see AddNonvoter.
func (s *Store) Promote(ctx context.Context, m Server) error {
	return s.change(ctx, func() raft.IndexFuture {
		return s.raft().AddVoter(m.raftID(), m.address(), 0, s.config.patience())
	})
}

// Remove takes a member, which must not be this node, out of the cluster: see
// AddNonvoter.
func (s *Store) Remove(ctx context.Context, m Server) error {
	if m.raftID() == s.self.raftID() {
		panic("store: a leader hands over before it is removed")
	}
	return s.change(ctx, func() raft.IndexFuture {
		return s.raft().RemoveServer(m.raftID(), 0, s.config.patience())
	})
}

// change makes one change of the configuration.
func (s *Store) change(ctx context.Context, request func() raft.IndexFuture) error {
	err := s.await(ctx, func() error { return s.translate(request().Error()) })
	if errors.Is(err, ctx.Err()) && ctx.Err() != nil {
		return fmt.Errorf("store: %w: %w", ErrAmbiguous, err)
	}
	return err
}

// TransferTo is TransferLeadership to the voter that a coordinator has.
func (s *Store) TransferTo(ctx context.Context, id string) error {
	if id == s.config.ID {
		return nil
	}
	err := s.await(ctx, func() error {
		for _, m := range s.raft().GetConfiguration().Configuration().Servers {
			if m.Suffrage == raft.Voter && parseServer(m.ID, m.Address).ID == id {
				return s.raft().LeadershipTransferToServer(m.ID, m.Address).Error()
			}
		}
		return fmt.Errorf("coordinator %q has no vote", id)
	})
	return s.transferred(err)
}

// transferred turns Raft's error about a handover into one of this package.
func (s *Store) transferred(err error) error {
	if errors.Is(err, raft.ErrNotLeader) {
		return s.translate(err)
	}
	if err != nil {
		return fmt.Errorf("store: transferring the leadership: %w", err)
	}
	return nil
}

// checkMembers compares the peers given with the members in the log, which decide. A
// list of which half or more are no members, and are not where a member is now either,
// is refused: it is of another cluster.
func (s *Store) checkMembers() error {
	members := s.Members()
	if len(members) == 0 {
		return nil // waits to be added
	}
	strange := 0
	var given, have []string
	for _, p := range s.config.Peers {
		given = append(given, p.ID)
		known := func(m Member) bool { return m.ID == p.ID || m.RaftAddr == p.RaftAddr }
		if p.ID != s.config.ID && !slices.ContainsFunc(members, known) {
			strange++
		}
	}
	for _, m := range members {
		have = append(have, m.ID)
	}
	if strange > 0 && 2*strange >= len(given) {
		return fmt.Errorf("store: folder %s is %w: its cluster has the members %v, but --peers names %v; add members with `coppice cluster add`, not with --peers",
			s.folder.path, ErrFolder, slices.Compact(have), given)
	}
	return nil
}

// addresses finds peers: by who knows them at run time, then by the list that this
// process was started with, then by the configuration in the log, which has them
// as they were when they joined.
type addresses struct {
	locate func(id string) string    // may be nil
	given  map[string]string         // by coordinator
	node   atomic.Pointer[raft.Raft] // nil until it runs
}

func (s *Store) addresses() *addresses {
	at := &addresses{locate: s.config.Locate, given: make(map[string]string)}
	for _, p := range s.config.Peers {
		at.given[p.ID] = p.RaftAddr
	}
	if len(s.config.Peers) == 0 {
		at.given[s.config.ID] = s.Addr()
	}
	return at
}

// ServerAddr implements raft.ServerAddressProvider.
func (a *addresses) ServerAddr(id raft.ServerID) (raft.ServerAddress, error) {
	s := parseServer(id, "")
	if a.locate != nil {
		s.RaftAddr = a.locate(s.ID)
	}
	if s.RaftAddr == "" {
		s.RaftAddr = a.given[s.ID]
	}
	if r := a.node.Load(); r != nil && s.RaftAddr == "" {
		for _, m := range r.GetConfiguration().Configuration().Servers {
			if m.ID == id {
				return m.Address, nil
			}
		}
	}
	if s.RaftAddr == "" {
		return "", fmt.Errorf("store: there is no peer %q", id)
	}
	return s.address(), nil
}
