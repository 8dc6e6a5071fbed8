// Package store is a Raft node around the replicated state machine of package state: it
// puts entries into a log that a majority of coordinators has on disk, and shows the state
// after the last of them. See DESIGN.md.
package store

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
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
	s.supervisor = &supervisor{config: &s.config, folder: folder, fsm: machine, life: s.lifecycle, notify: make(chan bool, 16)}
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
	held, err := files.Hold(path, filepath.Join(path, lockName), filepath.Join(path, stableName), filepath.Join(path, snapshotsName))
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
