package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/hashicorp/raft"
)

// Member is one server of the cluster, as in the configuration in the log.
type Member struct {
	Server
	Voter bool // true if it votes; a nonvoter receives the log and does not count for a majority
}

// Members lists the members by coordinator, from the latest configuration in the log here;
// on the leader it is the one in force. The list is empty on a node that has joined no
// cluster yet. While a coordinator with a new folder catches up, it is listed twice.
func (v *supervisor) Members() []Member {
	var list []Member
	for _, m := range v.raft().GetConfiguration().Configuration().Servers {
		list = append(list, Member{parseServer(m.ID, m.Address), m.Suffrage == raft.Voter})
	}
	slices.SortFunc(list, func(a, b Member) int {
		return cmp.Or(strings.Compare(a.ID, b.ID), strings.Compare(a.Directory, b.Directory))
	})
	return list
}

// membership changes who is a member, and says who answers at the addresses of members.
type membership struct {
	supervisor *supervisor
	stream     *stream
}

// Votes reports whether this node votes, according to its log.
func (m *membership) Votes() bool {
	self := m.supervisor.self
	return slices.ContainsFunc(m.supervisor.Members(), func(one Member) bool { return one.Voter && one.ID == self.ID && one.Directory == self.Directory })
}

// AddNonvoter makes a node a member that receives the log and does not vote. Only the
// leader can. It waits for other changes, and returns after this one is committed. It
// returns the same errors as Propose.
func (m *membership) AddNonvoter(ctx context.Context, s Server) error {
	return m.change(ctx, func(r *raft.Raft) raft.IndexFuture {
		return r.AddNonvoter(s.raftID(), s.address(), 0, m.supervisor.config.patience())
	})
}

// Promote gives a nonvoter a vote: see AddNonvoter.
func (m *membership) Promote(ctx context.Context, s Server) error {
	return m.change(ctx, func(r *raft.Raft) raft.IndexFuture {
		return r.AddVoter(s.raftID(), s.address(), 0, m.supervisor.config.patience())
	})
}

// Remove removes a member, which must not be this node: see AddNonvoter.
func (m *membership) Remove(ctx context.Context, s Server) error {
	if s.raftID() == m.supervisor.self.raftID() {
		panic("store: a leader hands over before it is removed")
	}
	return m.change(ctx, func(r *raft.Raft) raft.IndexFuture {
		return r.RemoveServer(s.raftID(), 0, m.supervisor.config.patience())
	})
}

// change makes one change of the configuration.
func (m *membership) change(ctx context.Context, request func(*raft.Raft) raft.IndexFuture) error {
	err := m.supervisor.await(ctx, func(r *raft.Raft) error { return m.supervisor.translate(request(r).Error()) })
	if errors.Is(err, ctx.Err()) && ctx.Err() != nil {
		return fmt.Errorf("store: %w: %w", ErrAmbiguous, err)
	}
	return err
}

// Reach reports why a server cannot be reached at its Raft address, or nil.
func (m *membership) Reach(ctx context.Context, s Server) error {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", s.RaftAddr)
	if err != nil {
		return err
	}
	defer c.Close()
	if end, ok := ctx.Deadline(); ok {
		if err := c.SetDeadline(end); err != nil {
			return err
		}
	}
	self := m.stream.self
	if _, err := c.Write(encodeGreeting(self, string(s.raftID()))); err != nil {
		return err
	}
	texts, welcome, err := readReply(c)
	if err != nil {
		return fmt.Errorf("no coordinator answers at this Raft address: %w", err)
	}
	if expected, found := (party{self.cluster, string(s.raftID())}), (party{texts[0], texts[1]}); !welcome || found != expected {
		return &Mismatch{Expected: expected, Found: found}
	}
	return nil
}

// Replaced returns the server that answers at the address of a member. ok is true if it is
// the same coordinator of the same cluster with another folder.
func (m *membership) Replaced(of Member) (other Server, ok bool) {
	found, ok := m.stream.mismatches.at(string(of.raftID()))
	if !ok || found.cluster != m.stream.self.cluster {
		return Server{}, false
	}
	other = parseServer(raft.ServerID(found.server), "")
	return other, other.ID == of.ID && other.Directory != of.Directory
}

// Stranger describes the server of another cluster that answers at the address of a member,
// or returns "".
func (m *membership) Stranger(of Member) string {
	found, ok := m.stream.mismatches.at(string(of.raftID()))
	if !ok || found.cluster == m.stream.self.cluster {
		return ""
	}
	return fmt.Sprintf("the server at its Raft address is %s of cluster %s, this cluster is %s", parseServer(raft.ServerID(found.server), "").ID, found.cluster, m.stream.self.cluster)
}

// Guests describes the coordinators of other clusters that dialled this node lately.
func (m *membership) Guests() (list []string) {
	for _, p := range m.stream.mismatches.foreign(m.stream.self.cluster) {
		list = append(list, fmt.Sprintf("coordinator %s of cluster %s tries to reach the Raft address of this coordinator and is refused", parseServer(raft.ServerID(p.server), "").ID, p.cluster))
	}
	slices.Sort(list)
	return list
}

// addresses finds peers: by Config.Locate, then by Config.Peers, then by the configuration
// in the log, which has the addresses from when the members joined.
type addresses struct {
	locate func(id string) string    // may be nil
	given  map[string]string         // by coordinator
	node   atomic.Pointer[raft.Raft] // nil until it runs
}

// newAddresses returns the addresses of a node that peers reach at self.
func newAddresses(c *Config, self string) *addresses {
	at := &addresses{locate: c.Locate, given: make(map[string]string)}
	for _, p := range c.Peers {
		at.given[p.ID] = p.RaftAddr
	}
	if len(c.Peers) == 0 {
		at.given[c.ID] = self
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
