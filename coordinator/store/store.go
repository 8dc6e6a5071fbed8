package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/coppice-ldl/coppice/coordinator/state"
)

// Store is a running node. Its methods may be called by any goroutine.
type Store struct {
	config Config
	fsm    *fsm
	stream *stream
	folder *Folder
	self   Server // this node, without an address

	life       atomic.Pointer[node] // the present one
	restarting sync.Mutex           // held while another begins, and by release
	restarts   atomic.Uint64
	trouble    atomic.Pointer[error]     // see Trouble
	unsaved    atomic.Pointer[error]     // why the last snapshot failed
	handing    atomic.Pointer[time.Time] // by the monotonic clock: see noteHandover; nil: not noted
	pending    pending
	dead       atomic.Bool // Raft answers nothing any more

	notify     chan bool // from Raft
	leadership chan bool // to the one reader of Leadership

	mu      sync.Mutex // guards what follows
	closing bool
	calls   sync.WaitGroup // of Raft; none is added once closing
	err     error          // why the node stopped

	down     chan struct{}  // closed when the node stops, by itself or by Close
	quit     chan struct{}  // closed when the goroutines in work should end
	work     sync.WaitGroup // relay and maintain
	closed   chan struct{}  // closed when Close is done
	closeErr error
}

func newStore(c Config) *Store {
	s := &Store{
		config: c, notify: make(chan bool, 16), leadership: make(chan bool),
		down: make(chan struct{}), quit: make(chan struct{}), closed: make(chan struct{}),
	}
	s.fsm = newFSM(c.SnapshotLogBytes, s.stop)
	return s
}

// State returns the state after the latest entry that this node has applied. It
// is committed, and never changes.
func (s *Store) State() *state.State { return s.fsm.view.state() }

// Watch returns the latest state, and a channel that closes once there is a later
// one.
func (s *Store) Watch() (*state.State, <-chan struct{}) { return s.fsm.view.watch() }

// Wait returns the first state seen that has applied the entry at index, which
// Propose returned here or on another node. The error is ctx's or Err's.
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

// Addr returns the address that peers reach this node at.
func (s *Store) Addr() string { return parseServer("", raft.ServerAddress(s.stream.advert)).RaftAddr }

// Down is closed when the node has stopped: by Close, because the log has an entry that
// this version does not know, or because its files can no longer be relied on. Err says
// which.
func (s *Store) Down() <-chan struct{} { return s.down }

// Err returns why the node has stopped, or nil while it runs. The error is ErrClosed, or wraps
// state.ErrUnknownEntry, files.ErrGone if the node's files were moved, or an error of the disk
// if the node cannot write its term or its vote.
func (s *Store) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// stop records why the node stops, once.
func (s *Store) stop(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return
	}
	s.err = why
	close(s.down)
	if !errors.Is(why, ErrClosed) {
		s.config.Logger.Error("this coordinator stops", "error", why)
	}
}

// fatal stops the node because its term or its vote is not on the disk. Raft answers
// nothing from then on.
func (s *Store) fatal(why error) {
	s.dead.Store(true)
	s.stop(why)
}

// begin registers a call of Raft that Close has to wait for.
func (s *Store) begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing || s.err != nil {
		return s.reason()
	}
	s.calls.Add(1)
	return nil
}

// reason is called with mu held. It wraps ErrClosed.
func (s *Store) reason() error {
	if s.err == nil || errors.Is(s.err, ErrClosed) {
		return ErrClosed
	}
	return fmt.Errorf("%w: %w", ErrClosed, s.err)
}

// await runs a call of Raft that may take long, for no longer than ctx. The call
// itself goes on until Raft answers it or ends, when it may owe the answer.
func (s *Store) await(ctx context.Context, call func() error) error {
	if err := s.begin(); err != nil {
		return err
	}
	n := s.life.Load()
	answer, done := make(chan error, 1), make(chan error, 1)
	go func() { answer <- call() }()
	go func() {
		defer s.calls.Done()
		select {
		case err := <-answer:
			done <- err
		case <-n.ended:
			done <- s.translate(raft.ErrRaftShutdown)
		}
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// maintain takes snapshots when the log is full or could be shorter, restarts Raft where it must, and
// ends it when the state machine stopped, so that a node that cannot follow does
// not lead or vote.
func (s *Store) maintain() {
	tick := time.NewTicker(s.config.timeouts.DiskProbe)
	defer tick.Stop()
	last := time.Now() // when a snapshot was tried
	for {
		select {
		case now := <-tick.C:
			s.tend()
			if s.config.shorten(now.Sub(last), s.fsm.logged.Load()) {
				s.snapshot()
				last = time.Now()
			}
		case <-s.fsm.full:
			s.snapshot()
			last = time.Now()
		case <-s.down:
			s.drain()
			s.restarting.Lock()
			s.life.Load().shutdown()
			s.restarting.Unlock()
			return
		case <-s.quit:
			return
		}
	}
}

func (s *Store) snapshot() {
	before := time.Now()
	err := s.Snapshot()
	switch {
	case err == nil:
		s.config.Logger.Debug("a snapshot was written", "seconds", time.Since(before).Seconds())
		s.unsaved.Store(nil)
	case !errors.Is(err, raft.ErrRaftShutdown):
		s.unsaved.Store(&err)
		s.config.Logger.Warn("a snapshot could not be written, so the log grows", "error", err)
	}
}
