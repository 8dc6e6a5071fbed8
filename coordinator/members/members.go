// Package members changes who the coordinators of a cluster are: it adds, removes and
// hands over, one change at a time, and refuses a change that would cost the majority.
//
// A new coordinator first receives the log and the blobs, without a vote. Reconcile,
// which runs on the leader, gives it a vote once it has caught up.
package members

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/protocol"
)

// MaxVoters is the largest number of voters in a cluster.
const MaxVoters = 7

// ErrRefused is wrapped by the error of a change that is not possible now. Such a
// change has changed nothing.
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
	// Reach returns why a server cannot be reached at its Raft address, or nil.
	Reach(ctx context.Context, m store.Server) error
	// Replaced returns the server that answers in place of a member, if it is the same
	// coordinator with another folder.
	Replaced(m store.Member) (store.Server, bool)
	// Stranger tells of a coordinator of another cluster that answers in place of a
	// member, or returns "".
	Stranger(m store.Member) string
}

var _ Log = (*store.Store)(nil)

// Service changes the members, on the leader. The fields are set before its first use.
type Service struct {
	Log Log
	// Self describes this coordinator.
	Self func() protocol.Self
	// Find returns the addresses of a member.
	Find func(id string) (protocol.MemberEntry, bool)
	// Ask asks the coordinator at an HTTP address to describe itself.
	Ask func(ctx context.Context, http string) (protocol.Self, error)
	// Certificates returns the certificates that a coordinator has shown to this one; nil: connections
	// are in the clear.
	Certificates func(id string) []*x509.Certificate
	// Security is the flags about TLS of a process of this cluster.
	Security func() string
	// Patience is how long a coordinator may take to answer.
	Patience time.Duration
	Logger   *slog.Logger

	changing gate      // held during a change and during Reconcile
	said     string    // the last warning of Reconcile; changing guards it
	saidAt   time.Time // the time of that warning; changing guards it
}

// gate is a lock with a bounded wait.
type gate struct {
	once sync.Once
	held chan struct{} // has an element while the gate is held
}

// enter takes the gate, and reports whether it could do so before wait was over or ctx
// done.
func (g *gate) enter(ctx context.Context, wait time.Duration) bool {
	g.once.Do(func() { g.held = make(chan struct{}, 1) })
	select {
	case g.held <- struct{}{}:
		return true
	default:
	}
	select {
	case g.held <- struct{}{}:
		return true
	case <-time.After(wait):
	case <-ctx.Done():
	}
	return false
}

func (g *gate) leave() { <-g.held }

// begin begins a change. It waits for Reconcile, and refuses if another change takes
// long.
func (s *Service) begin(ctx context.Context) (end func(), err error) {
	if !s.changing.enter(ctx, 3*s.Patience) {
		return nil, refused("another change of the list of members is in progress; try again when it is done")
	}
	return s.changing.leave, nil
}

// List asks each member how it is, and describes them all.
func (s *Service) List(ctx context.Context) protocol.Members {
	self := s.Self()
	list := s.Log.Members()
	m := protocol.Members{Cluster: self.Cluster, Leader: self.Leader, Applied: self.Applied,
		Members: make([]protocol.Member, len(list))}
	var asking sync.WaitGroup
	for i, one := range list {
		asking.Go(func() { m.Members[i] = s.describe(ctx, one, &self) })
	}
	asking.Wait()
	return m
}

// describe asks one member how it is.
func (s *Service) describe(ctx context.Context, m store.Member, self *protocol.Self) protocol.Member {
	d := protocol.Member{MemberEntry: protocol.MemberEntry{ID: m.ID, Raft: m.RaftAddr}, Directory: m.Directory,
		Role: protocol.RoleNonvoter, Condition: protocol.Condition{Contact: -1}}
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
	if err == nil {
		err = Other(&now, m, self.Cluster, d.HTTP)
	}
	if phase := store.Phase(now.Phase); err == nil && phase != store.PhaseJoining && phase != store.PhaseMember {
		err = errors.New(now.Problem)
	}
	if err != nil {
		d.Problem = err.Error()
		if stranger := s.Log.Stranger(m); stranger != "" && stranger != d.Problem {
			d.Problem += "; " + stranger
		}
		return d
	}
	d.Alive, d.Version, d.Applied, d.Condition = true, now.Version, now.Applied, now.Condition
	if now.Heartbeat != self.Heartbeat {
		d.Warning = join(d.Warning, fmt.Sprintf("the coordinator's heartbeat is %d ms, but the leader's is %d ms: start "+
			"every coordinator with the same --heartbeat", now.Heartbeat, self.Heartbeat))
	}
	if d.Role == protocol.RoleNonvoter && now.Last == 0 {
		if err := s.reach(ctx, m.Server, d.Routes); err != nil {
			d.Problem = join(d.Problem, err.Error())
		}
	}
	return d
}

// Other returns why a coordinator that answers at the address of a member of a cluster is not that member, or nil.
func Other(now *protocol.Self, m store.Member, cluster, address string) error {
	switch {
	case now.ID != m.ID, now.Cluster != "" && now.Cluster != cluster:
		return fmt.Errorf("the coordinator at %s is %s of cluster %s; this cluster is %s", address, now.ID,
			now.Cluster, cluster)
	case now.Directory == "":
		return errors.New(now.Problem) // it is starting and does not know its folder yet
	case now.Directory != m.Directory:
		return fmt.Errorf("the coordinator's folder was emptied; the new folder (directory id %s) replaces the old one "+
			"once it has the log and all blobs", now.Directory)
	}
	return nil
}

// join joins two texts; one or both may be empty.
func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

// reach returns which port of a coordinator this one cannot reach, or nil.
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

// ask asks the coordinator at an address to describe itself, within Patience.
func (s *Service) ask(ctx context.Context, address string) (protocol.Self, error) {
	if address == "" {
		return protocol.Self{}, errors.New("the coordinator's address is not known")
	}
	limited, cancel := context.WithTimeout(ctx, s.Patience)
	defer cancel()
	began := time.Now()
	self, err := s.Ask(limited, address)
	if peer, ok := errors.AsType[*certs.PeerError](err); ok {
		return self, peer // without the URL
	}
	if errors.Is(err, context.DeadlineExceeded) && !errors.Is(ctx.Err(), context.Canceled) {
		err = fmt.Errorf("no answer in %v", time.Since(began).Round(100*time.Millisecond))
	}
	return self, err
}

// propose commits an entry about a member.
func (s *Service) propose(ctx context.Context, kind protocol.EntryKind, body any) error {
	_, _, err := s.Log.Propose(ctx, protocol.EncodeEntry(kind, body))
	return err
}

// revoke commits that the certificates of a coordinator that is removed are revoked, and returns them.
func (s *Service) revoke(ctx context.Context, id string) (list []protocol.Revocation, err error) {
	if s.Certificates == nil {
		return nil, nil
	}
	now := time.Now()
	for _, c := range s.Certificates(id) {
		if now.After(c.NotAfter) || s.Log.State().Revoked(certs.Serial(c)) {
			continue
		}
		r := protocol.Revocation{Serial: certs.Serial(c), Until: c.NotAfter.Unix(), Time: now.Unix()}
		if who, err := certs.IdentityOf(c); err == nil {
			r.Identity = who.String()
		}
		if err := s.propose(ctx, protocol.EntryRevoke, protocol.RevokeEntry{Revocation: r}); err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, nil
}

// forget commits that a coordinator's addresses are deleted.
func (s *Service) forget(ctx context.Context, id string) error {
	return s.propose(ctx, protocol.EntryMemberRemove, protocol.MemberRemoveEntry{ID: id})
}
