// Package store is a Raft node around the replicated state machine of package state: it
// puts entries into a log that a majority of coordinators has on disk, and shows the state
// after the last of them. See DESIGN.md.
package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/internal/files"
)

// Store is a running node. Any goroutine may call its methods. Its parts hide the locks.
type Store struct {
	config Config
	folder *Folder
	self   Server // without an address
	stream *stream

	*view       // the state
	*lifecycle  // whether the store runs
	*supervisor // the Raft node
	*proposals
	*leadership
	*membership

	quit     chan struct{}  // closed when the goroutines in work must end
	work     sync.WaitGroup // relay, maintain and watchFolder
	closed   chan struct{}  // closed after Close
	closeErr error
}

func newStore(c Config, folder *Folder) *Store {
	s := &Store{config: c, folder: folder, quit: make(chan struct{}), closed: make(chan struct{})}
	s.lifecycle = &lifecycle{log: c.Logger, down: make(chan struct{})}
	machine := newFSM(c.SnapshotLogBytes, s.stop)
	s.view = machine.view
	s.supervisor = &supervisor{config: &s.config, folder: folder, fsm: machine, life: s.lifecycle,
		notify: make(chan bool, 16)}
	refusals := new(transfer)
	s.proposals = &proposals{supervisor: s.supervisor, transfer: refusals}
	s.leadership = &leadership{supervisor: s.supervisor, transfer: refusals, changes: make(chan bool)}
	s.membership = &membership{supervisor: s.supervisor}
	return s
}

// errUndecided says that it is not settled how a new node begins.
var errUndecided = errors.New("store: this node has not decided yet whether to start or join a cluster")

// Open starts a node in a folder that is settled (Folder.Decide): it restores the last
// snapshot, listens, and joins its peers. The folder and the listener of config belong to
// the store from then on, even if Open fails; then nothing is left behind. Errors wrap
// ErrFolder or ErrCorrupt, or name the address or path at fault.
func Open(config Config, folder *Folder) (*Store, error) {
	c, err := config.withDefaults()
	i := folder.Identity()
	if err == nil && !i.settled() {
		err = errUndecided
	}
	if err != nil {
		if config.Listener != nil {
			err = errors.Join(err, config.Listener.Close())
		}
		return nil, errors.Join(err, folder.Close())
	}
	s := newStore(c, folder)
	s.self = i.server()
	s.supervisor.self = s.self
	if s.stream, err = listen(&s.config, i); err == nil {
		s.supervisor.stream, s.membership.stream = s.stream, s.stream
		err = s.start()
	}
	if err != nil {
		return nil, errors.Join(err, s.release())
	}
	s.work.Go(func() { s.relay(s.quit) })
	s.work.Go(s.maintain)
	s.work.Go(s.watchFolder)
	return s, nil
}

// Close stops the node and leaves nothing running. A leader first tries to transfer the
// leadership, for at most an election. Proposals without an answer are answered; later ones
// get ErrClosed.
func (s *Store) Close() error {
	if !s.refuse() { // 1. No new calls.
		<-s.closed
		return s.closeErr
	}
	// 2. Transfer the leadership while the node is intact, so that the others need not miss
	// a heartbeat first.
	s.abdicate()
	// 3. Let Raft answer the calls. It must run for that: it forgets answers when it shuts
	// down. Without a majority it steps
	//    down within an election, which answers too.
	s.drain(2 * s.config.patience())
	// 4. Wake those who wait for states.
	s.stop(ErrClosed)
	s.closeErr = s.release()
	close(s.closed)
	return s.closeErr
}

// release gives back what Open took: Raft and its connections and log; the goroutines,
// which may wait for Raft; the listener; and the lock of the folder.
func (s *Store) release() error {
	errs := []error{s.supervisor.close()}
	close(s.quit)
	s.work.Wait()
	close(s.changes)
	if s.stream != nil {
		errs = append(errs, s.stream.Close())
	}
	errs = append(errs, s.folder.Close())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("store: closing: %w", err)
	}
	return nil
}

// maintain takes snapshots if the log is full or should be shorter, restarts Raft if it
// hangs or its log failed, and shuts Raft down after the store has stopped.
func (s *Store) maintain() {
	tick := time.NewTicker(s.config.timeouts.DiskProbe)
	defer tick.Stop()
	last := time.Now() // when a snapshot was tried
	for {
		select {
		case now := <-tick.C:
			if s.leadership.transfer.hangs(s.IsLeader(), time.Now(), 2*s.config.timeouts.HandOver) {
				s.mend(errHangs)
			} else {
				s.mendLog()
			}
			if s.config.shorten(now.Sub(last), s.fsm.logged.Load()) {
				s.save()
				last = time.Now()
			}
		case <-s.fsm.full:
			s.save()
			last = time.Now()
		case <-s.down:
			s.drain(2 * s.config.patience())
			s.shutdown()
			return
		case <-s.quit:
			return
		}
	}
}

// watchEvery is the time between two checks of the folder.
const watchEvery = 250 * time.Millisecond

// watchFolder stops the store if a file or folder that it has open no longer exists. A node
// that writes to its log or its votes finds out before it acknowledges anything; this is
// for a node that has nothing to write.
func (s *Store) watchFolder() {
	path := s.folder.path
	held, err := files.Hold(path, filepath.Join(path, lockName), filepath.Join(path, stableName),
		filepath.Join(path, snapshotsName))
	if err != nil {
		s.stop(fmt.Errorf("store: the folder: %w", err))
		return
	}
	defer held.Close()
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		if err := s.inPlace(held); errors.Is(err, files.ErrGone) {
			s.stop(err)
			return
		}
		select {
		case <-tick.C:
		case <-s.quit:
			return
		case <-s.down:
			return
		}
	}
}

// Wait returns the first state that it sees after the entry at index, which Propose
// returned here or on another node. The error is from ctx, or Err.
func (s *Store) Wait(ctx context.Context, index uint64) (*state.State, error) {
	for {
		now, changed := s.Watch()
		if now.Index() >= index {
			return now, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-s.down:
			return nil, s.Err()
		}
	}
}

// Lead makes a node the leader in the replicated state: see the function Lead.
func (s *Store) Lead(ctx context.Context, node string) (epoch uint64, err error) {
	return Lead(ctx, s, node)
}

// LogDir returns the folder of the log's files.
func (s *Store) LogDir() string { return filepath.Join(s.config.Dir, logName) }

// Answer describes this node to others.
func (s *Store) Answer() Answer {
	r := s.raft()
	a := s.folder.Answer()
	a.Term, a.Last, a.Phase = r.CurrentTerm(), r.LastIndex(), PhaseMember
	if a.Last == 0 {
		a.Phase = PhaseJoining
	}
	if c := r.GetConfiguration(); c.Index() <= r.CommitIndex() {
		for _, m := range c.Configuration().Servers {
			one := parseServer(m.ID, m.Address)
			a.Members = append(a.Members, one)
			if m.Suffrage == raft.Voter {
				a.Voters = append(a.Voters, one.ID)
			}
		}
	}
	return a
}

// Stats describes the node, for metrics and people.
type Stats struct {
	Role         string // "Leader", "Follower", "Candidate", "Shutdown"
	Term         uint64
	LastIndex    uint64 // in the log here
	CommitIndex  uint64
	AppliedIndex uint64 // of the last entry that State has seen
	// LastContact is the time since this node heard from the leader; 0 on the leader,
	// negative if it never has.
	LastContact time.Duration
	LogBytes    int64  // of entries applied since the last snapshot
	Snapshots   uint64 // written by this process
	Peers       int    // coordinators of the cluster, with this one
}

// Stats returns the present state of the node.
func (s *Store) Stats() Stats {
	r := s.raft()
	contact := time.Duration(-1)
	if last := r.LastContact(); s.IsLeader() {
		contact = 0
	} else if !last.IsZero() {
		contact = time.Since(last)
	}
	return Stats{
		Role: r.State().String(), Term: r.CurrentTerm(), LastIndex: r.LastIndex(),
		CommitIndex: r.CommitIndex(), AppliedIndex: s.State().Index(), LastContact: contact,
		LogBytes: s.fsm.logged.Load(), Snapshots: s.fsm.snapshots.Load(), Peers: len(s.Members()),
	}
}

// lifecycle says whether a store runs, and counts the calls of Raft that Close must wait
// for. A store ends in three steps: it accepts no calls (refuse), it has answered the
// accepted ones (drain), and it has stopped (stop). It may also stop by itself.
type lifecycle struct {
	log  *slog.Logger
	down chan struct{} // closed by the first stop
	mute atomic.Bool   // true if Raft answers no calls any longer, so that drain must not wait for them

	mu       sync.Mutex
	refusing bool           // guarded by mu
	err      error          // why the store stopped; guarded by mu
	calls    sync.WaitGroup // no call is added if refusing or err is set
}

// Down is closed when the node has stopped: by Close, because of a log entry that this
// version does not know, or because its files are not reliable any longer. Err has the
// reason.
func (l *lifecycle) Down() <-chan struct{} { return l.down }

// Err returns why the node has stopped, or nil while it runs. The error is ErrClosed, or
// wraps state.ErrUnknownEntry, files.ErrGone if the node's files were moved, or an error of
// the disk if the node cannot write its term or its vote.
func (l *lifecycle) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// stop sets why the node stops. Only the first call counts.
func (l *lifecycle) stop(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return
	}
	l.err = why
	close(l.down)
	if !errors.Is(why, ErrClosed) {
		l.log.Error("this coordinator stops", "error", why)
	}
}

// fatal stops the node because its term or its vote is not on the disk. Raft answers
// nothing from then on.
func (l *lifecycle) fatal(why error) {
	l.mute.Store(true)
	l.stop(why)
}

// stopped reports whether the store is closing or has stopped.
func (l *lifecycle) stopped() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refusing || l.err != nil
}

// begin counts a call of Raft, which must end with l.calls.Done. If the store is closing or
// has stopped, it returns an error that wraps ErrClosed.
func (l *lifecycle) begin() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.err != nil && !errors.Is(l.err, ErrClosed):
		return fmt.Errorf("%w: %w", ErrClosed, l.err)
	case l.err != nil, l.refusing:
		return ErrClosed
	}
	l.calls.Add(1)
	return nil
}

// refuse ends the acceptance of calls. It returns true at the first call.
func (l *lifecycle) refuse() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := !l.refusing
	l.refusing = true
	return first
}

// drain waits until Raft has answered all calls, but not for longer than limit.
func (l *lifecycle) drain(limit time.Duration) {
	if l.mute.Load() {
		return
	}
	done := make(chan struct{})
	go func() { l.calls.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(limit):
		l.log.Warn("the log does not answer and is closed")
	}
}

// membership changes who is a member, and says who answers at the addresses of members.
type membership struct {
	supervisor *supervisor
	stream     *stream
}

// Votes reports whether this node votes, according to its log.
func (m *membership) Votes() bool {
	self := m.supervisor.self
	return slices.ContainsFunc(m.supervisor.Members(), func(one Member) bool {
		return one.Voter && one.ID == self.ID && one.Directory == self.Directory
	})
}

// AddNonvoter makes a node a member that receives the log and does not vote. Only the
// leader can. It waits for other changes, and returns after this one is committed. It
// returns the same errors as Propose.
func (m *membership) AddNonvoter(ctx context.Context, s Server) error {
	return m.change(ctx, func(r *raft.Raft) raft.IndexFuture {
		return r.AddNonvoter(raftID(s), addressOf(s), 0, m.supervisor.config.patience())
	})
}

// Promote gives a nonvoter a vote: see AddNonvoter.
func (m *membership) Promote(ctx context.Context, s Server) error {
	return m.change(ctx, func(r *raft.Raft) raft.IndexFuture {
		return r.AddVoter(raftID(s), addressOf(s), 0, m.supervisor.config.patience())
	})
}

// Remove removes a member, which must not be this node: see AddNonvoter.
func (m *membership) Remove(ctx context.Context, s Server) error {
	if raftID(s) == raftID(m.supervisor.self) {
		panic("store: a leader hands over before it is removed")
	}
	return m.change(ctx, func(r *raft.Raft) raft.IndexFuture {
		return r.RemoveServer(raftID(s), 0, m.supervisor.config.patience())
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
	if _, err := c.Write(encodeGreeting(self, string(raftID(s)))); err != nil {
		return err
	}
	texts, welcome, err := readReply(c)
	if err != nil {
		return fmt.Errorf("no coordinator answers at this Raft address: %w", err)
	}
	if expected, found := (party{self.cluster, string(raftID(s))}), (party{texts[0], texts[1]}); !welcome ||
		found != expected {
		return &Mismatch{Expected: expected, Found: found}
	}
	return nil
}

// Replaced returns the server that answers at the address of a member. ok is true if it is
// the same coordinator of the same cluster with another folder.
func (m *membership) Replaced(of Member) (other Server, ok bool) {
	found, ok := m.stream.mismatches.at(string(raftID(of.Server)))
	if !ok || found.cluster != m.stream.self.cluster {
		return Server{}, false
	}
	other = parseServer(raft.ServerID(found.server), "")
	return other, other.ID == of.ID && other.Directory != of.Directory
}

// Stranger describes the server of another cluster that answers at the address of a member,
// or returns "".
func (m *membership) Stranger(of Member) string {
	found, ok := m.stream.mismatches.at(string(raftID(of.Server)))
	if !ok || found.cluster == m.stream.self.cluster {
		return ""
	}
	return fmt.Sprintf("the server at its Raft address is %s of cluster %s, this cluster is %s",
		parseServer(raft.ServerID(found.server), "").ID, found.cluster, m.stream.self.cluster)
}

// Guests describes the coordinators of other clusters that dialled this node lately.
func (m *membership) Guests() (list []string) {
	for _, p := range m.stream.mismatches.foreign(m.stream.self.cluster) {
		list = append(list, fmt.Sprintf("coordinator %s of cluster %s tries to reach the Raft address of this coordinator "+
			"and is refused", parseServer(raft.ServerID(p.server), "").ID, p.cluster))
	}
	slices.Sort(list)
	return list
}
