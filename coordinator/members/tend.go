package members

import (
	"context"

	"github.com/coppice-ldl/coppice/protocol"
)

// slack is how many entries a new coordinator may be behind when it is given a
// vote: entries come all the time.
const slack = 64

// Tend does, on the leader, what an earlier change left to do: it gives members
// that have caught up a vote, and forgets the addresses of those that are out.
func (s *Service) Tend(ctx context.Context) {
	if !s.due() {
		return
	}
	if !s.changing.enter(ctx, 0) {
		return // a change is under way
	}
	defer s.changing.leave()
	s.promote(ctx)
	s.forgetOthers(ctx)
}

// due reports whether there is something to do, without asking anybody.
func (s *Service) due() bool {
	if !s.Log.IsLeader() {
		return false
	}
	known := s.Log.State().Members()
	in := make(map[string]bool)
	for _, m := range s.Log.Members() {
		if !m.Voter {
			return true
		}
		in[m.ID] = true
	}
	for _, m := range known {
		if !in[m.ID] {
			return true
		}
	}
	return false
}

func (s *Service) promote(ctx context.Context) {
	now := s.List(ctx)
	m := nonvoter(now.Members, "")
	if m == nil || !caughtUp(m, now.Applied) {
		return
	}
	if err := checkLeft(append(voters(now.Members, ""), *m), "giving "+m.ID+" a vote"); err != nil {
		s.Logger.Warn("a coordinator that has caught up gets no vote yet", "id", m.ID, "reason", err)
		return
	}
	if err := s.Log.Promote(ctx, m.ID, m.Raft); err != nil {
		s.Logger.Warn("a coordinator could not be given a vote", "id", m.ID, "error", err)
		return
	}
	s.Logger.Info("a coordinator has caught up and votes", "id", m.ID)
}

// caughtUp reports whether a member has the log, but for what is on its way, and
// all blobs.
func caughtUp(m *protocol.Member, applied uint64) bool {
	return m.Alive && m.Applied > 0 && m.Applied+slack >= applied && m.Missing == 0
}

// forgetOthers forgets addresses of coordinators that are out: the leader that
// removed them ended before it could.
func (s *Service) forgetOthers(ctx context.Context) {
	in := make(map[string]bool)
	for _, m := range s.Log.Members() {
		in[m.ID] = true
	}
	for _, m := range s.Log.State().Members() {
		if in[m.ID] {
			continue
		}
		if err := s.propose(ctx, protocol.EntryMemberRemove, protocol.MemberRemoveEntry{ID: m.ID}); err != nil {
			s.Logger.Info("a removed coordinator could not be deleted from the list of members", "id", m.ID, "error", err)
		}
	}
}
