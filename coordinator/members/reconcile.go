package members

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/protocol"
)

// slack is how many entries a new coordinator may lack when it gets its vote: entries
// come all the time.
const slack = 64

// Reconcile does what is due for the members, if this coordinator leads and no change
// is in progress:
//   - if the folder of a coordinator was emptied, it adds the coordinator with its new directory id;
//   - it gives members that have caught up a vote, in place of the server that they replace;
//   - it deletes the addresses of coordinators that are not members.
func (s *Service) Reconcile(ctx context.Context) {
	if !s.Log.IsLeader() {
		return
	}
	// Usually nothing is due, and then no other coordinator is asked.
	due := len(s.former()) > 0 || slices.ContainsFunc(s.Log.Members(), func(m store.Member) bool {
		_, replaced := s.Log.Replaced(m)
		return replaced || !m.Voter
	})
	if !due || !s.changing.enter(ctx, 0) {
		return
	}
	defer s.changing.leave()
	s.replace(ctx)
	s.promote(ctx)
	for _, id := range s.former() {
		if err := s.forget(ctx, id); err != nil {
			s.Logger.Info("a removed coordinator could not be deleted from the list of members", "id", id, "error", err)
		}
	}
}

// former lists coordinators that are not members, but have addresses in the log: the
// leader that removed them ended before it deleted the addresses.
func (s *Service) former() (ids []string) {
	members := s.Log.Members()
	for _, e := range s.Log.State().Members() {
		if !slices.ContainsFunc(members, func(m store.Member) bool { return m.ID == e.ID }) {
			ids = append(ids, e.ID)
		}
	}
	return ids
}

// replace adds, without a vote, the coordinators that answer with another folder than
// the log has. A member that runs answers with its own folder, so it is not replaced.
func (s *Service) replace(ctx context.Context) {
	list := s.Log.Members()
	for _, m := range list {
		next, ok := s.Log.Replaced(m)
		if !ok || slices.ContainsFunc(list, func(m store.Member) bool { return m.ID == next.ID && m.Directory == next.Directory }) {
			continue
		}
		at, _ := s.Find(m.ID)
		who, err := s.ask(ctx, at.HTTP)
		if err == nil {
			same := who
			same.Last = 0 // its log was sent to this very server
			err = s.checkSuits(&same, protocol.AddRequest{ID: m.ID, HTTP: at.HTTP})
		}
		if err == nil && who.Directory != next.Directory {
			continue // it was emptied again, and the next dial will find that
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

// promote gives the members that have caught up a vote. The server that such a member
// replaces is removed first: its disk is lost, so its vote counts for nothing.
func (s *Service) promote(ctx context.Context) {
	now := s.List(ctx)
	for _, m := range now.Members {
		if m.Role != protocol.RoleNonvoter {
			continue
		}
		server := store.Server{ID: m.ID, Directory: m.Directory, RaftAddr: m.Raft}
		if slices.ContainsFunc(now.Members, func(o protocol.Member) bool { return o.ID == m.ID && o.Directory != m.Directory && o.Alive }) {
			s.Logger.Info("a coordinator has its former folder again; its other folder is removed from the list of members", "id", m.ID, "directory", m.Directory)
			if err := s.Log.Remove(ctx, server); err != nil {
				s.warn("a folder of a coordinator could not be removed from the list of members", "id", m.ID, "error", err)
			}
			continue
		}
		// It has caught up if it lacks at most a few entries, and no blob that another
		// coordinator has.
		if !m.Alive || m.Applied == 0 || m.Applied+slack < now.Applied || m.Missing != m.Lost {
			continue
		}
		rest := voters(now.Members, m.ID)
		err := checkQuorum(append(rest[:len(rest):len(rest)], m), "giving "+m.ID+" a vote")
		if err == nil && len(rest) < len(voters(now.Members, "")) {
			err = checkQuorum(rest, "removing the old entry of "+m.ID)
		}
		if err != nil {
			s.warn("a coordinator has caught up, but cannot get a vote yet", "id", m.ID, "reason", err)
			continue
		}
		if err := s.removeOthers(ctx, server); err != nil {
			s.warn("the old folder of a coordinator could not be removed from the list of members", "id", m.ID, "error", err)
			continue
		}
		if err := s.Log.Promote(ctx, server); err != nil {
			s.warn("a coordinator could not get a vote", "id", m.ID, "error", err)
			continue
		}
		s.Logger.Info("a coordinator has caught up and has a vote", "id", m.ID)
	}
}

// removeOthers removes the servers of a coordinator with other folders.
func (s *Service) removeOthers(ctx context.Context, server store.Server) error {
	for _, old := range s.Log.Members() {
		if old.ID == server.ID && old.Directory != server.Directory {
			if err := s.Log.Remove(ctx, old.Server); err != nil {
				return err
			}
		}
	}
	return nil
}

// warn logs a warning. It logs an equal one at most once a minute.
func (s *Service) warn(text string, args ...any) {
	said, now := fmt.Sprint(text, args), time.Now()
	if said == s.said && now.Sub(s.saidAt) < time.Minute {
		return
	}
	s.said, s.saidAt = said, now
	s.Logger.Warn(text, args...)
}
