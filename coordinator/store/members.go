package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/hashicorp/raft"
)

// Member is one node of the cluster, as the log's configuration has it.
type Member struct {
	ID       string
	RaftAddr string // as it was when it became a member; Config.Locate may know a later one
	Voter    bool   // a nonvoter receives the log and neither votes nor counts
}

// Members lists the members by ID, from the latest configuration in the log here:
// on the leader the one in force. It is empty on a node that has joined no cluster
// yet.
func (s *Store) Members() []Member {
	var list []Member
	for _, m := range s.raft().GetConfiguration().Configuration().Servers {
		list = append(list, Member{ID: string(m.ID), RaftAddr: string(m.Address), Voter: m.Suffrage == raft.Voter})
	}
	slices.SortFunc(list, func(a, b Member) int { return strings.Compare(a.ID, b.ID) })
	return list
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
func (s *Store) AddNonvoter(ctx context.Context, id, addr string) error {
	return s.change(ctx, func() raft.IndexFuture {
		return s.raft().AddNonvoter(raft.ServerID(id), raft.ServerAddress(addr), 0, s.config.patience())
	})
}

// Promote lets a nonvoter vote: see AddNonvoter.
func (s *Store) Promote(ctx context.Context, id, addr string) error {
	return s.change(ctx, func() raft.IndexFuture {
		return s.raft().AddVoter(raft.ServerID(id), raft.ServerAddress(addr), 0, s.config.patience())
	})
}

// Remove takes a member, which must not be this node, out of the cluster: see
// AddNonvoter.
func (s *Store) Remove(ctx context.Context, id string) error {
	if id == s.config.ID {
		panic("store: a leader hands over before it is removed")
	}
	return s.change(ctx, func() raft.IndexFuture {
		return s.raft().RemoveServer(raft.ServerID(id), 0, s.config.patience())
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

// TransferTo is TransferLeadership to a certain voter.
func (s *Store) TransferTo(ctx context.Context, id string) error {
	if id == s.config.ID {
		return nil
	}
	err := s.await(ctx, func() error {
		return s.raft().LeadershipTransferToServer(raft.ServerID(id), addressIn(s.raft(), raft.ServerID(id))).Error()
	})
	return s.transferred(err)
}

func addressIn(r *raft.Raft, id raft.ServerID) raft.ServerAddress {
	for _, m := range r.GetConfiguration().Configuration().Servers {
		if m.ID == id {
			return m.Address
		}
	}
	return ""
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
// is refused: such nodes might begin a cluster of their own, whose leader this node
// would obey.
func (s *Store) checkMembers(given []raft.Server) error {
	members := s.raft().GetConfiguration().Configuration().Servers
	have := ids(members)
	if len(have) == 0 {
		return nil // waits to be added
	}
	strange := 0
	for _, p := range given {
		known := func(m raft.Server) bool { return m.ID == p.ID || m.Address == p.Address }
		if string(p.ID) != s.config.ID && !slices.ContainsFunc(members, known) {
			strange++
		}
	}
	if strange > 0 && 2*strange >= len(given) {
		return fmt.Errorf("store: folder %s is %w: its cluster is %v, the peers given are %v; members are added by `coppice cluster add`, not by --peers",
			s.folder.path, ErrFolder, have, ids(given))
	}
	return nil
}

func ids(servers []raft.Server) []string {
	var list []string
	for _, s := range servers {
		list = append(list, string(s.ID))
	}
	slices.Sort(list)
	return list
}

// addresses finds peers: by who knows them at run time, then by the list that this
// process was started with, then by the configuration in the log, which has them
// as they were when they joined.
type addresses struct {
	locate func(id string) string // may be nil
	given  map[raft.ServerID]raft.ServerAddress
	node   atomic.Pointer[raft.Raft] // nil until it runs
}

// ServerAddr implements raft.ServerAddressProvider.
func (a *addresses) ServerAddr(id raft.ServerID) (raft.ServerAddress, error) {
	if a.locate != nil {
		if addr := a.locate(string(id)); addr != "" {
			return raft.ServerAddress(addr), nil
		}
	}
	if addr, ok := a.given[id]; ok {
		return addr, nil
	}
	if r := a.node.Load(); r != nil {
		if addr := addressIn(r, id); addr != "" {
			return addr, nil
		}
	}
	return "", fmt.Errorf("store: no peer %q", id)
}

// servers returns the voters that a new cluster begins with, and how peers are
// found.
func (s *Store) servers() ([]raft.Server, *addresses) {
	c := &s.config
	peers := c.Peers
	if len(peers) == 0 {
		peers = []Peer{{ID: c.ID, RaftAddr: string(s.stream.advert)}}
	}
	at := &addresses{locate: c.Locate, given: make(map[raft.ServerID]raft.ServerAddress)}
	var list []raft.Server
	for _, p := range peers {
		id, addr := raft.ServerID(p.ID), raft.ServerAddress(p.RaftAddr)
		at.given[id] = addr
		list = append(list, raft.Server{Suffrage: raft.Voter, ID: id, Address: addr})
	}
	return list, at
}
