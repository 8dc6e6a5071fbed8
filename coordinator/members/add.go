package members

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/protocol"
)

// Add makes a coordinator that runs and waits a member without a vote; Tend gives
// it one. Adding one that is a member at the same address already changes nothing.
// The error wraps ErrRefused, or is one of Propose.
func (s *Service) Add(ctx context.Context, r protocol.AddRequest) (protocol.Members, error) {
	end, err := s.begin(ctx)
	if err != nil {
		return protocol.Members{}, err
	}
	defer end()
	now := s.List(ctx)
	if m := find(now.Members, r.ID); m != nil {
		if m.HTTP != r.HTTP {
			return now, refused("%s is already a member, at %s", r.ID, m.HTTP)
		}
		now.Warning = fmt.Sprintf("%s is already a member", r.ID)
		return now, nil
	}
	if err := checkAdd(&now, r); err != nil {
		return now, err
	}
	who, err := s.identify(ctx, r)
	if err != nil {
		return now, err
	}
	if err := checkAddresses(now.Members, &who); err != nil {
		return now, err
	}
	server := serverOf(&who)
	if err := s.reach(ctx, server, who.Routes); err != nil {
		return now, refused("%s: %v; start it with --address, the address that others reach, or with --raft and --nats-routes, and open these ports", who.ID, err)
	}
	s.Logger.Info("a coordinator is added", "id", who.ID, "http", who.HTTP, "raft", who.Raft)
	if err := s.propose(ctx, protocol.EntryMember, who.MemberEntry); err != nil {
		return now, err
	}
	if err := s.Log.AddNonvoter(ctx, server); err != nil {
		return now, errors.Join(err, s.takeBack(ctx, who.ID, err))
	}
	now = s.List(ctx)
	now.Warning = warn(len(voters(now.Members, "")) + 1)
	return now, nil
}

// serverOf returns a coordinator as a server of Raft.
func serverOf(who *protocol.Self) store.Server {
	return store.Server{ID: who.ID, Directory: who.Directory, RaftAddr: who.Raft}
}

// takeBack forgets the addresses of a coordinator that could not be added. Where it is
// unknown whether it was added, Tend does so once that is known.
func (s *Service) takeBack(ctx context.Context, id string, cause error) error {
	if errors.Is(cause, store.ErrAmbiguous) || !s.Log.IsLeader() || slices.ContainsFunc(s.Log.Members(), func(m store.Member) bool { return m.ID == id }) {
		return nil
	}
	return s.propose(ctx, protocol.EntryMemberRemove, protocol.MemberRemoveEntry{ID: id})
}

// checkAdd refuses what the list of members speaks against.
func checkAdd(now *protocol.Members, r protocol.AddRequest) error {
	if r.ID == "" || r.HTTP == "" {
		return fmt.Errorf("%w: adding a coordinator needs its id and its HTTP address", state.ErrInvalid)
	}
	if m := nonvoter(now.Members, ""); m != nil {
		return refused("coordinator %s is still being added; wait until it votes, or remove it", m.ID)
	}
	if n := len(voters(now.Members, "")); n >= MaxVoters {
		return refused("the cluster already has %d coordinators, the largest number is %d", n, MaxVoters)
	}
	for _, m := range now.Members {
		for _, p := range placesOf(&m.MemberEntry) {
			if protocol.SamePlace(p.address, r.HTTP) {
				return refused("the address %s is taken by coordinator %s (%s)", r.HTTP, m.ID, p.what)
			}
		}
	}
	return nil
}

// place is where others reach a part of a coordinator.
type place struct{ what, address string }

// placesOf lists where a coordinator listens. One without routes uses an external NATS.
func placesOf(m *protocol.MemberEntry) []place {
	list := []place{{"HTTP", m.HTTP}, {"Raft", m.Raft}}
	if m.Routes != "" {
		list = append(list, place{"NATS for clients", strings.TrimPrefix(m.NATS, "nats://")}, place{"NATS for routes", m.Routes})
	}
	return list
}

// identify asks the new coordinator who it is, and refuses one that cannot become
// a member of this cluster.
func (s *Service) identify(ctx context.Context, r protocol.AddRequest) (protocol.Self, error) {
	who, err := s.askOpen(ctx, r.HTTP)
	if err != nil {
		return who, refused("no coordinator answers the leader at %s: %v; start the coordinator there first: coppice coordinator --id %s --dir DIR --join-cluster %s --address %s",
			r.HTTP, err, r.ID, s.Self().HTTP, r.HTTP)
	}
	if err := s.suits(&who, r); err != nil {
		return who, err
	}
	if who.HTTP == r.HTTP {
		return who, nil
	}
	again, err := s.ask(ctx, who.HTTP)
	if err != nil || again.ID != who.ID || again.Cluster != who.Cluster {
		return who, refused("%s says that it is at %s, but the leader cannot reach it there; start it with --address HOST:PORT, the address that others reach", r.ID, who.HTTP)
	}
	return who, nil
}

// askOpen asks a coordinator that may just start, until its log is open, and for no longer than
// Patience.
func (s *Service) askOpen(ctx context.Context, http string) (who protocol.Self, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.Patience)
	defer cancel()
	for {
		who, err = s.ask(ctx, http)
		phase := store.Phase(who.Phase)
		if err != nil || phase == store.PhaseJoining || phase == store.PhaseMember {
			return who, err
		}
		if wait.For(ctx, openPause); ctx.Err() != nil {
			return who, fmt.Errorf("it is still starting: %s", who.Problem)
		}
	}
}

// openPause is the time between two questions to a coordinator that starts.
const openPause = 20 * time.Millisecond

// suits compares what the new coordinator says of itself with this one.
func (s *Service) suits(who *protocol.Self, r protocol.AddRequest) error {
	self := s.Self()
	switch {
	case who.ID != r.ID:
		return refused("the coordinator at %s has the ID %s, not %s", r.HTTP, who.ID, r.ID)
	case who.Cluster != self.Cluster:
		return refused("%s is a member of cluster %s, this cluster is %s: start it with an empty folder and --join-cluster %s", r.ID, who.Cluster, self.Cluster, self.HTTP)
	case who.Protocol != self.Protocol || who.Numerics != self.Numerics:
		return refused("%s (%s) has protocol version %d and arithmetic version %d; this cluster (%s) has %d and %d",
			r.ID, who.Version, who.Protocol, who.Numerics, self.Version, self.Protocol, self.Numerics)
	case who.Heartbeat != self.Heartbeat:
		return refused("%s has a heartbeat of %d ms, but this cluster has %d ms: start it with --heartbeat %dms", r.ID, who.Heartbeat, self.Heartbeat, self.Heartbeat)
	case who.External != self.External:
		return refused("%s uses the NATS server %q, but this cluster uses %q (empty: the NATS servers of the coordinators)", r.ID, who.External, self.External)
	case who.Last > 0:
		return refused("%s still has its log from an earlier membership: empty its folder and start it again with --join-cluster %s", r.ID, self.HTTP)
	}
	return nil
}

// checkAddresses refuses addresses that a member has.
func checkAddresses(list []protocol.Member, who *protocol.Self) error {
	for _, m := range list {
		for _, has := range placesOf(&m.MemberEntry) {
			for _, says := range placesOf(&who.MemberEntry) {
				if protocol.SamePlace(has.address, says.address) {
					return refused("%s has its %s at %s, but that address is already used for %s by coordinator %s: start it with an --address whose four ports are free", who.ID, says.what, says.address, has.what, m.ID)
				}
			}
		}
	}
	return nil
}
