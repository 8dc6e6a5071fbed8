package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"
)

// Close stops the node and leaves nothing running. A leader first tries to hand
// its office over, for at most an election. What was proposed and not answered
// yet is answered; what comes later gets ErrClosed.
func (s *Store) Close() error {
	s.mu.Lock()
	first := !s.closing
	s.closing = true
	s.mu.Unlock()
	if !first {
		<-s.closed
		return s.closeErr
	}
	s.closeErr = s.close()
	close(s.closed)
	return s.closeErr
}

// close stops things in an order in which none waits for another that is gone.
func (s *Store) close() error {
	// 1. Nothing new comes in from here (closing is set). Leave office while the
	//    node is whole, so that the others need not miss a heartbeat first.
	s.abdicate()
	// 2. Let Raft answer what it has taken. It must be alive for that: it forgets
	//    answers when it shuts down. Without a majority it steps down within an
	//    election, which answers too.
	s.drain()
	// 3. Tell who waits for states.
	s.stop(ErrClosed)
	// 4. Raft, then the connections that its goroutines may hang on, then wait for
	//    those goroutines.
	// 5. The goroutines of the store, of which one reads what Raft notifies and the
	//    other may wait for a snapshot of Raft.
	// 6. What the node stood on: the log's files, and the lock last.
	return s.release()
}

// abdicate hands the leadership to another node, if this one has it.
func (s *Store) abdicate() {
	if s.raft().State() != raft.Leader || s.voters() < 2 {
		return
	}
	done := make(chan error, 1)
	go func() { done <- s.raft().LeadershipTransfer().Error() }()
	select {
	case <-done: // elected or not, the others get along
	case <-s.down:
	case <-time.After(2 * s.config.election()):
	}
}

// drain waits for the calls of Raft to be answered, if it answers.
func (s *Store) drain() {
	if s.dead.Load() {
		return
	}
	done := make(chan struct{})
	go func() { s.calls.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(2 * s.config.patience()):
		s.config.Logger.Warn("the log does not answer and is closed")
	}
}

// release gives back what open and Open took, the last first.
func (s *Store) release() error {
	var errs []error
	s.restarting.Lock() // no other life begins from here: the store is closing or has not opened
	if n := s.life.Load(); n != nil {
		errs = append(errs, s.endLife(n))
	}
	s.restarting.Unlock()
	close(s.quit)
	s.work.Wait()
	close(s.leadership)
	if s.stream != nil {
		errs = append(errs, s.stream.Close())
	}
	if s.folder != nil {
		errs = append(errs, s.folder.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("store: closing: %w", err)
	}
	return nil
}

// endLife ends a life. One that did not end when it should is not waited for: the process
// ends, and must.
func (s *Store) endLife(n *node) error {
	ended := make(chan error, 1)
	go func() { ended <- n.end() }()
	if !errors.Is(s.Err(), errStuck) {
		return <-ended
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(s.config.patience()):
		return errStuck
	}
}

// TransferLeadership makes another node the leader, and returns once this one is
// not. Errors: ErrNotLeader, or that no other took over in the time of an
// election: then this node leads on.
func (s *Store) TransferLeadership(ctx context.Context) error {
	err := s.await(ctx, func() error { return s.raft().LeadershipTransfer().Error() })
	return s.transferred(err)
}
