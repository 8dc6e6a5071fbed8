package members

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/protocol"
)

// slack is how many entries a new coordinator may be behind when it is given a
// vote: entries come all the time.
const slack = 64

// Tend does, on the leader, what has to be done about the members: it adds a coordinator whose
// folder was emptied under its new directory id, gives members that have caught up a vote, in
// the place of the server that they replace, and deletes the addresses of those that are out.
func (s *Service) Tend(ctx context.Context) {
	if !s.due() {
		return
	}
	if !s.changing.enter(ctx, 0) {
		return // a change is under way
	}
	defer s.changing.leave()
	s.replace(ctx)
	s.promote(ctx)
	s.forgetOthers(ctx)
}

// due reports whether there is something to do, without asking anybody.
func (s *Service) due() bool {
	if !s.Log.IsLeader() {
		return false
	}
	in := make(map[string]bool)
	for _, m := range s.Log.Members() {
		if _, replaced := s.Log.Replaced(m); replaced || !m.Voter {
			return true
		}
		in[m.ID] = true
	}
	for _, m := range s.Log.State().Members() {
		if !in[m.ID] {
			return true
		}
	}
	return false
}

// replace adds, without a vote, the servers that answer where members with other folders
// should be. A member whose folder is there answers itself, so it is never replaced while it
// runs.
func (s *Service) replace(ctx context.Context) {
	list := s.Log.Members()
	has := make(map[store.Server]bool)
	for _, m := range list {
		has[store.Server{ID: m.ID, Directory: m.Directory}] = true
	}
	for _, m := range list {
		next, ok := s.Log.Replaced(m)
		if !ok || has[next] {
			continue
		}
		at, _ := s.Find(m.ID)
		who, err := s.ask(ctx, at.HTTP)
		if err == nil {
			same := who
			same.Last = 0 // what it has of the log was sent to this very server
			err = s.suits(&same, protocol.AddRequest{ID: m.ID, HTTP: at.HTTP})
		}
		if err == nil && who.Directory != next.Directory {
			continue // it was emptied once more, which the next dial finds
		}
		if err != nil {
			s.warn("a coordinator with a new folder cannot replace its old entry yet", "id", m.ID, "error", err)
			continue
		}
		s.Logger.Info("a coordinator with a new folder is catching up; then it replaces its old entry", "id", m.ID, "directory", who.Directory, "old", m.Directory)
		if err := s.Log.AddNonvoter(ctx, serverOf(&who)); err != nil {
			s.warn("a coordinator with a new folder could not be added", "id", m.ID, "error", err)
		}
	}
}

// promote gives the nonvoters that have caught up a vote. A server that one of them replaces is
// removed first: its disk is lost, so it counts for nothing.
func (s *Service) promote(ctx context.Context) {
	now := s.List(ctx)
	for _, m := range now.Members {
		if m.Role != protocol.RoleNonvoter {
			continue
		}
		if slices.ContainsFunc(now.Members, func(o protocol.Member) bool { return o.ID == m.ID && o.Directory != m.Directory && o.Alive }) {
			s.Logger.Info("a coordinator has its former folder again; its other folder is removed from the list of members", "id", m.ID, "directory", m.Directory)
			if err := s.Log.Remove(ctx, store.Server{ID: m.ID, Directory: m.Directory, RaftAddr: m.Raft}); err != nil {
				s.warn("a folder of a coordinator could not be removed from the list of members", "id", m.ID, "error", err)
			}
			continue
		}
		if !caughtUp(&m, now.Applied) {
			continue
		}
		rest := voters(now.Members, m.ID)
		err := checkLeft(append(rest[:len(rest):len(rest)], m), "giving "+m.ID+" a vote")
		if err == nil && len(rest) < len(voters(now.Members, "")) {
			err = checkLeft(rest, "removing the old entry of "+m.ID)
		}
		if err != nil {
			s.warn("a coordinator has caught up, but cannot get a vote yet", "id", m.ID, "reason", err)
			continue
		}
		if err := s.supersede(ctx, &m); err != nil {
			s.warn("the old folder of a coordinator could not be removed from the list of members", "id", m.ID, "error", err)
			continue
		}
		if err := s.Log.Promote(ctx, store.Server{ID: m.ID, Directory: m.Directory, RaftAddr: m.Raft}); err != nil {
			s.warn("a coordinator could not get a vote", "id", m.ID, "error", err)
			continue
		}
		s.Logger.Info("a coordinator has caught up and has a vote", "id", m.ID)
	}
}

// warn writes a warning of Tend to the log, an equal one once a minute at most.
func (s *Service) warn(text string, args ...any) {
	said, now := fmt.Sprint(text, args), time.Now()
	if said == s.said && now.Sub(s.saidAt) < time.Minute {
		return
	}
	s.said, s.saidAt = said, now
	s.Logger.Warn(text, args...)
}

// supersede removes the other servers of a coordinator.
func (s *Service) supersede(ctx context.Context, m *protocol.Member) error {
	for _, old := range s.Log.Members() {
		if old.ID == m.ID && old.Directory != m.Directory {
			if err := s.Log.Remove(ctx, old.Server); err != nil {
				return err
			}
		}
	}
	return nil
}

// caughtUp reports whether a member has the log, but for what is on its way, and
// all blobs that any coordinator has.
func caughtUp(m *protocol.Member, applied uint64) bool {
	return m.Alive && m.Applied > 0 && m.Applied+slack >= applied && m.Missing == m.Lost
}

// forgetOthers deletes the addresses of coordinators that are out: the leader that
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
