// Package members changes who the coordinators of a cluster are: it adds, removes
// and hands over, one change at a time, and refuses what would cost the majority.
// A coordinator that is added receives the log and the blobs first and votes once
// it has caught up: Tend sees to that, on whichever coordinator leads.
package members

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/protocol"
)

// ErrRefused is wrapped by the error of a change that cannot be made as things
// are; nothing has changed then.
var ErrRefused = errors.New("refused")

func refused(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrRefused, fmt.Sprintf(format, args...))
}

// Log is the replicated log and its configuration, as *store.Store is.
type Log interface {
	State() *state.State
	Members() []store.Member
	IsLeader() bool
	Propose(ctx context.Context, entry []byte) (index uint64, value any, err error)
	AddNonvoter(ctx context.Context, m store.Server) error
	Promote(ctx context.Context, m store.Server) error
	Remove(ctx context.Context, m store.Server) error
	HandOver(ctx context.Context, to string) error
	// Reach reports why a server cannot be reached on its Raft address, or nil.
	Reach(ctx context.Context, m store.Server) error
	// Replaced returns the server that answers where a member should be, if that is the same
	// coordinator with another folder.
	Replaced(m store.Member) (store.Server, bool)
	// Stranger says that a coordinator of another cluster answers where a member should be.
	Stranger(m store.Member) string
}

var _ Log = (*store.Store)(nil)

// Service makes the changes, on the leader.
type Service struct {
	Log Log
	// Self describes this coordinator.
	Self func() protocol.Self
	// Find returns what is known of a member's addresses.
	Find func(id string) (protocol.MemberEntry, bool)
	// Ask asks the coordinator at an HTTP address to describe itself.
	Ask func(ctx context.Context, http string) (protocol.Self, error)
	// Patience is how long a coordinator may take to answer.
	Patience time.Duration
	Logger   *slog.Logger

	changing gate      // passed by one change at a time
	said     string    // the last warning of Tend
	saidAt   time.Time // when it was written
}

// gate is a mutex that can be waited for with a bound.
type gate struct {
	once sync.Once
	free chan struct{} // has an element while nobody is in
}

// enter waits for a while at most and reports whether it got in.
func (g *gate) enter(ctx context.Context, wait time.Duration) bool {
	g.once.Do(func() {
		g.free = make(chan struct{}, 1)
		g.free <- struct{}{}
	})
	select {
	case <-g.free:
		return true
	default:
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-g.free:
		return true
	case <-t.C:
	case <-ctx.Done():
	}
	return false
}

func (g *gate) leave() { g.free <- struct{}{} }

// begin takes the right to make a change. What Tend does is waited for.
func (s *Service) begin(ctx context.Context) (end func(), err error) {
	if !s.changing.enter(ctx, 3*s.Patience) {
		return nil, refused("another change of the list of members is in progress; try again when it is done")
	}
	return s.changing.leave, nil
}

// List describes the members, after asking each of them.
func (s *Service) List(ctx context.Context) protocol.Members {
	self := s.Self()
	list := s.Log.Members()
	m := protocol.Members{Cluster: self.Cluster, Leader: self.Leader, Applied: self.Applied, Members: make([]protocol.Member, len(list))}
	var asking sync.WaitGroup
	for i, one := range list {
		asking.Go(func() { m.Members[i] = s.describe(ctx, one, &self) })
	}
	asking.Wait()
	return m
}

// describe asks one member.
func (s *Service) describe(ctx context.Context, m store.Member, self *protocol.Self) protocol.Member {
	d := protocol.Member{MemberEntry: protocol.MemberEntry{ID: m.ID, Raft: m.RaftAddr}, Directory: m.Directory, Role: protocol.RoleNonvoter, Contact: -1}
	if e, ok := s.Find(m.ID); ok {
		d.MemberEntry = e
	}
	switch {
	case m.Voter && m.ID == self.Leader:
		d.Role = protocol.RoleLeader
	case m.Voter:
		d.Role = protocol.RoleVoter
	}
	now, err := *self, error(nil)
	if m.ID != self.ID {
		now, err = s.ask(ctx, d.HTTP)
	}
	switch phase := store.Phase(now.Phase); {
	case err != nil:
	case now.ID != m.ID, now.Cluster != "" && now.Cluster != self.Cluster:
		err = fmt.Errorf("the coordinator at %s is %s of cluster %s", d.HTTP, now.ID, now.Cluster)
	case now.Directory == "":
		err = errors.New(now.Problem) // it starts, and does not know its folder yet
	case now.Directory != m.Directory:
		err = fmt.Errorf("the coordinator's folder was emptied; the new folder (directory id %s) replaces the old one once it has the log and all blobs", now.Directory)
	case phase != store.PhaseJoining && phase != store.PhaseMember:
		err = errors.New(now.Problem)
	}
	if err != nil {
		d.Problem = err.Error()
		if stranger := s.Log.Stranger(m); stranger != "" && stranger != d.Problem {
			d.Problem += "; " + stranger
		}
		return d
	}
	d.Alive, d.Version = true, now.Version
	d.Applied, d.Contact, d.Problem, d.Warning = now.Applied, now.Contact, now.Problem, now.Warning
	if now.Heartbeat != self.Heartbeat {
		d.Warning = join(d.Warning, fmt.Sprintf("the coordinator's heartbeat is %d ms, but the leader's is %d ms: start every coordinator with the same --heartbeat", now.Heartbeat, self.Heartbeat))
	}
	if d.Role == protocol.RoleNonvoter && now.Last == 0 {
		if err := s.reach(ctx, m.Server, d.Routes); err != nil {
			d.Problem = join(d.Problem, err.Error())
		}
	}
	d.Missing, d.Lost, d.MissingFor = now.Missing, now.Lost, now.MissingFor
	return d
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

// reach reports which port of a coordinator this one cannot reach, or nil.
func (s *Service) reach(ctx context.Context, m store.Server, routes string) error {
	ctx, cancel := context.WithTimeout(ctx, s.Patience)
	defer cancel()
	if err := s.Log.Reach(ctx, m); err != nil {
		return fmt.Errorf("the leader cannot reach the coordinator's Raft address %s: %v", m.RaftAddr, err)
	}
	if routes == "" {
		return nil
	}
	c, err := new(net.Dialer).DialContext(ctx, "tcp", routes)
	if err != nil {
		return fmt.Errorf("the leader cannot reach the coordinator's address for NATS routes, %s: %v", routes, err)
	}
	return c.Close()
}

func (s *Service) ask(ctx context.Context, http string) (protocol.Self, error) {
	if http == "" {
		return protocol.Self{}, errors.New("the coordinator's address is not known")
	}
	limited, cancel := context.WithTimeout(ctx, s.Patience)
	defer cancel()
	self, err := s.Ask(limited, http)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("no answer in %v", s.Patience)
	}
	return self, err
}

// propose commits an entry about a member.
func (s *Service) propose(ctx context.Context, kind protocol.EntryKind, body any) error {
	_, _, err := s.Log.Propose(ctx, protocol.EncodeEntry(kind, body))
	return err
}
