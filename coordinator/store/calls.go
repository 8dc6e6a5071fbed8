package store

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

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
