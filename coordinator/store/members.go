package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/raft"
)

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
	c, err := m.stream.dialer.DialContext(ctx, "tcp", s.RaftAddr)
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
