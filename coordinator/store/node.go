package store

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// node is one life of the Raft node: what is made anew when it is restarted within
// the process.
type node struct {
	session  *session
	gate     *gate // the transport
	log      *diskLog
	raft     *raft.Raft
	shutdown func() raft.Future // of raft: the same future each time
	ended    chan struct{}      // closed once end is through
	once     sync.Once          // of end
	err      error              // what end returned
}

// raft returns the Raft of the present life; during a restart the last one, which
// answers that it is shut down.
func (s *Store) raft() *raft.Raft { return s.life.Load().raft }

// startNode begins a life: it opens the log, mends or refuses what is corrupt, and
// runs Raft. What it opened is closed again where it fails.
func (s *Store) startNode(log hclog.Logger) (err error) {
	n := &node{ended: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.end())
		}
	}()
	snapshots, err := raft.NewFileSnapshotStoreWithLogger(s.folder.path, retainSnapshots, log.Named("snapshot"))
	if err != nil {
		return fmt.Errorf("store: cannot read the snapshots in %s: %w", s.folder.path, err)
	}
	whole, err := newSummed(snapshots, s.folder.path)
	if err != nil {
		return err
	}
	if err := syncFolder(s.folder.path); err != nil { // snapshots may have been made
		return err
	}
	if n.log, err = s.openLog(snapshots, log.Named("wal")); err != nil {
		return err
	}
	if err := s.folder.writeFirst(n.log, whole); err != nil {
		return fmt.Errorf("store: cannot start the log in %s: %w", s.folder.log(), err)
	}
	n.session = s.stream.session()
	at := s.addresses()
	n.gate = newGate(raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		ServerAddressProvider: at, Logger: log.Named("net"), Stream: n.session, MaxPool: pooledConns, Timeout: s.config.patience(),
		MaxRPCsInFlight: 1, // see DESIGN.md, One append at a time
	}))
	n.gate.fault, n.gate.dials = s.config.fault, n.session.dials.Load
	s.fsm.begin()
	r, err := newRaft(s.config.raft(s.self, s.notify, log), s.fsm, n.log, raftStable{s.folder.stable, s.fatal}, whole, n.gate)
	if err != nil {
		return fmt.Errorf("store: folder %s: %w", s.folder.path, err)
	}
	at.node.Store(r)
	n.raft, n.shutdown = r, sync.OnceValue(r.Shutdown)
	s.life.Store(n)
	return s.checkMembers()
}

// end ends a life and closes what it stood on: Raft, then the connections that its
// goroutines may hang on, then the log.
func (n *node) end() error {
	n.once.Do(func() { n.err = n.close() })
	return n.err
}

func (n *node) close() error {
	defer close(n.ended)
	var errs []error
	switch {
	case n.raft != nil:
		ended := n.shutdown()
		_ = n.gate.Close() // it only ever returns nil
		_ = ended.Error()  // so does this; it waits
		_ = n.gate.Close() // Raft has closed it as well
	case n.gate != nil:
		_ = n.gate.Close()
	case n.session != nil:
		errs = append(errs, n.session.Close())
	}
	if n.gate != nil {
		n.gate.stop()
	}
	if n.log != nil {
		errs = append(errs, n.log.Close())
	}
	return errors.Join(errs...)
}

// errStuck says that Raft could not be restarted: only a new process helps.
var errStuck = errors.New("store: Raft did not shut down in time; restart the process")

// restart ends this life of the node and begins another: what Raft or its log got
// stuck in is gone. Nothing acknowledged is lost, as after a crash; what was on its
// way is answered with ErrAmbiguous. The state never goes back for readers.
func (s *Store) restart(why error) error {
	s.restarting.Lock()
	defer s.restarting.Unlock()
	if s.stopped() {
		return ErrClosed
	}
	s.config.Logger.Warn("Raft is restarted in this process", "reason", why)
	began, old := time.Now(), s.life.Load()
	ended := make(chan error, 1)
	go func() { ended <- old.end() }()
	select {
	case err := <-ended:
		if err != nil {
			s.config.Logger.Warn("Raft did not shut down cleanly", "error", err)
		}
	case <-time.After(4 * s.config.patience()):
		s.stop(errStuck)
		return errStuck
	}
	s.notify <- false // of the old life, whose own word may be lost; relay always reads
	if err := s.startNode(newLog(s.config.Logger)); err != nil {
		return err
	}
	s.restarts.Add(1)
	s.config.Logger.Info("Raft runs again", "seconds", time.Since(began).Seconds())
	return nil
}

// stopped reports whether the store is closing or has stopped.
func (s *Store) stopped() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing || s.err != nil
}
