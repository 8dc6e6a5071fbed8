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
	goal     *goal              // of a recovery; tend's own
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
		return fmt.Errorf("store: the snapshots in %s: %w", s.folder.path, err)
	}
	whole, err := newSummed(snapshots, s.folder.path)
	if err != nil {
		return err
	}
	if err := syncFolder(s.folder.path); err != nil { // snapshots may have been made
		return err
	}
	var recovering bool
	if n.log, recovering, err = s.openLog(snapshots, log.Named("wal")); err != nil {
		return err
	}
	n.session = s.stream.session()
	voters, at := s.servers()
	n.gate = newGate(raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		ServerAddressProvider: at, Logger: log.Named("net"), Stream: n.session, MaxPool: pooledConns, Timeout: s.config.patience(),
		MaxRPCsInFlight: 1, // see DESIGN.md, One append at a time
	}), recovering)
	n.gate.fault, n.gate.dials = s.config.fault, n.session.dials.Load
	s.folder.stable.abstains.Store(recovering)
	c := s.config.raft(s.notify, log)
	if recovering { // see caughtUp
		c.HeartbeatTimeout, c.ElectionTimeout = never, never
	}
	return s.run(n, voters, at, whole, c)
}

// never is how long a recovering node waits for a leader before it stands itself: the
// gate would let nobody vote for it, but where an old configuration has it as the only
// voter it asks nobody.
const never = 365 * 24 * time.Hour

// run runs the Raft node.
func (s *Store) run(n *node, voters []raft.Server, at *addresses, snapshots raft.SnapshotStore, c *raft.Config) error {
	if s.folder.begins {
		if err := bootstrap(n.log, s.folder.stable, snapshots, n.gate, c, voters); err != nil {
			return fmt.Errorf("store: beginning the log in %s: %w", s.folder.log(), err)
		}
	}
	if err := s.begun(); err != nil {
		return err
	}
	if s.config.Join {
		voters = nil // some leader adds this node
	}
	s.fsm.begin()
	r, err := raft.NewRaft(c, s.fsm, n.log, s.folder.stable, snapshots, n.gate)
	if err != nil {
		return fmt.Errorf("store: folder %s: %w", s.folder.path, err)
	}
	at.node.Store(r)
	n.raft, n.shutdown = r, sync.OnceValue(r.Shutdown)
	s.life.Store(n)
	if n.gate.recovering() { // the members may be of long ago; who they are comes with the log
		return nil
	}
	return s.checkMembers(voters)
}

// begun makes the folder one that is not new any more, before Raft runs.
func (s *Store) begun() error {
	if err := s.config.fails("old"); err != nil {
		return err
	}
	s.folder.begins = false
	return s.folder.drop(newName)
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
var errStuck = errors.New("store: Raft does not end; the process must be started again")

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
