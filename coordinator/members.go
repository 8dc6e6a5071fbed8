package coordinator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/members"
	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/machine"
	"github.com/coppice-ldl/coppice/protocol"
)

// ErrRemoved ends a coordinator that was removed from its cluster.
var ErrRemoved = errors.New("this coordinator was removed from its cluster")

// The pace at which a coordinator looks after who the members are.
const (
	membersEvery = time.Second
	// doubtAfter is how many heartbeats without a leader pass before the others are
	// asked whether this coordinator is still one of them.
	doubtAfter = 20
)

// service returns what changes the members.
func (n *node) service() *members.Service {
	return &members.Service{
		Log: n.store, Self: n.describe, Find: n.roster.find, Ask: askSelf,
		Patience: max(time.Second, 5*n.cfg.Heartbeat), Logger: n.cfg.Log,
	}
}

// describe is what this coordinator says of itself.
func (n *node) describe() protocol.Self {
	st := n.store.Stats()
	s := n.identity(n.store.Answer())
	s.Applied = st.AppliedIndex
	if st.LastContact >= 0 {
		s.Contact = st.LastContact.Milliseconds()
	}
	s.Leader, _ = n.store.Leader()
	s.Problem, s.Warning = n.problem(), n.warning()
	s.Host, s.Load = machine.Name(), machine.Load()
	n.copies.describe(&s)
	return s
}

// identity is the part of Self that is there before Raft runs.
func (n *node) identity(a store.Answer) protocol.Self {
	s := protocol.Self{
		MemberEntry: n.roster.self, Cluster: a.Cluster, Process: n.process,
		Protocol: protocol.Version, Numerics: round.Numerics, Heartbeat: int(n.cfg.Heartbeat / time.Millisecond),
		External: n.cfg.NATS, Contact: -1,
		Term: a.Term, Last: a.Last, Phase: string(a.Phase), Directory: a.Directory, Seeded: a.Seeded, Peers: a.Peers,
	}
	for _, f := range a.Founders {
		s.Founders = append(s.Founders, protocol.RaftServer(f))
	}
	for _, m := range a.Members {
		s.Servers = append(s.Servers, protocol.RaftServer(m))
	}
	for _, id := range a.Voters {
		m, _ := n.roster.find(id)
		m.ID = id
		s.Voters = append(s.Voters, m)
	}
	return s
}

// others lists the other coordinators: those that vote, and those that are to vote
// once they have caught up.
func (n *node) others() (voters, rest []string) {
	s := n.roster.store.Load()
	if s == nil {
		return nil, nil
	}
	members := s.Members()
	for _, m := range members {
		if m.Voter && m.ID != n.cfg.ID {
			voters = append(voters, m.ID)
		}
	}
	for _, m := range members {
		if !m.Voter && m.ID != n.cfg.ID && !slices.Contains(voters, m.ID) {
			rest = append(rest, m.ID)
		}
	}
	return voters, rest
}

// keepMembers looks after who the members are until ctx is done. Its error wraps
// ErrRemoved or ErrDuplicate.
func (n *node) keepMembers(ctx context.Context) error {
	tick := time.NewTicker(min(membersEvery, 5*n.cfg.Heartbeat))
	defer tick.Stop()
	k := keeper{node: n, kept: n.roster.kept, routes: n.routes()}
	for {
		k.keep()
		k.connect()
		k.wait()
		n.membership.Tend(ctx)
		if err := k.doubt(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// keeper is what keepMembers remembers.
type keeper struct {
	*node
	kept   keptMembers // in the folder
	routes []string    // of NATS
	waits  bool        // it was told that the coordinator waits to be added
	heard  time.Time   // when nothing was in doubt last
}

// keep writes the list of members into the folder when it has changed, or was deleted.
func (k *keeper) keep() {
	next := k.roster.keep(k.store)
	_, missing := os.Stat(filepath.Join(k.cfg.Dir, membersName))
	if reflect.DeepEqual(next, k.kept) && missing == nil {
		return
	}
	if err := next.write(k.cfg.Dir); err != nil {
		k.cfg.Log.Warn("the list of members could not be written", "error", err)
		return
	}
	k.kept = next
}

// connect has the embedded NATS connect to those of the members.
func (k *keeper) connect() {
	routes := k.node.routes()
	if k.nats == nil || slices.Equal(routes, k.routes) {
		return
	}
	if err := k.nats.SetRoutes(routes); err != nil {
		k.cfg.Log.Warn("the NATS routes could not be changed to the new list of members", "error", err)
		return
	}
	k.routes = routes
}

// wait says, once, that the coordinator waits to be added.
func (k *keeper) wait() {
	if !k.waits && k.joins != "" && k.store.Answer().Phase == store.PhaseJoining {
		k.waits = true
		k.cfg.Log.Info("this coordinator waits to be added", "command", fmt.Sprintf("coppice cluster add %s=%s", k.cfg.ID, k.roster.self.HTTP))
	}
}

// doubt asks, after a while without a leader, whether this coordinator was removed.
func (k *keeper) doubt(ctx context.Context) error {
	if !k.inDoubt() {
		k.heard = time.Now()
		return nil
	}
	if time.Since(k.heard) < doubtAfter*k.cfg.Heartbeat {
		return nil
	}
	directory := k.store.Answer().Directory
	if err := k.checkAlone(ctx, k.subjects.Cluster, directory); err != nil {
		return err
	}
	if by := k.removedBy(ctx, directory); by != "" {
		return fmt.Errorf("%w: %s says that coordinator %s with this folder (directory id %s) is not a member: to add it again, empty %s and start it with --join-cluster", ErrRemoved, by, k.cfg.ID, directory, k.cfg.Dir)
	}
	return nil
}

// inDoubt reports whether this coordinator may have been removed: it has a log, and
// no leader sends it more.
func (n *node) inDoubt() bool {
	st := n.store.Stats()
	return st.LastIndex > 0 && st.Role != "Leader" && (st.LastContact < 0 || st.LastContact > doubtAfter*n.cfg.Heartbeat)
}

// removedBy asks the other coordinators whether this one was removed, and returns
// the leader that says so. It takes a leader that a majority obeys, of the same
// cluster, that neither has this coordinator as a member nor remembers it.
func (n *node) removedBy(ctx context.Context, directory string) string {
	for _, m := range n.roster.known() {
		if m.ID == n.cfg.ID || ctx.Err() != nil {
			continue
		}
		var list protocol.Members
		if err := ask(ctx, m.HTTP, "/v1/members", &list); err != nil || list.Cluster != n.subjects.Cluster || list.Leader == "" || len(list.Members) == 0 {
			continue
		}
		var c protocol.Cluster
		if err := ask(ctx, m.HTTP, "/v1/cluster", &c); err != nil || c.Leader == "" || c.Epoch < n.store.State().Epoch() {
			continue
		}
		if !isMember(n.cfg.ID, directory, list.Members) {
			return list.Leader
		}
		return ""
	}
	return ""
}

// isMember reports whether a coordinator, with its folder of now, is a member.
func isMember(id, directory string, list []protocol.Member) bool {
	return slices.ContainsFunc(list, func(m protocol.Member) bool { return m.ID == id && m.Directory == directory })
}
