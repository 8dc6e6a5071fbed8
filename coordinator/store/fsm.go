package store

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"github.com/coppice-ldl/coppice/coordinator/state"
)

// view has the latest state for readers, and wakes readers that wait for a later one.
type view struct {
	mu      sync.Mutex
	current *state.State  // guarded by mu
	changed chan struct{} // closed by the next publish; guarded by mu
}

// Watch returns the latest state, and a channel that is closed when there is a later one.
func (v *view) Watch() (*state.State, <-chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.current, v.changed
}

// State returns the state after the latest entry that this node has applied. It is
// committed, and never changes.
func (v *view) State() *state.State {
	s, _ := v.Watch()
	return s
}

// fsm adapts the state machine to Raft. One goroutine at a time calls begin, Apply,
// Snapshot and Restore.
type fsm struct {
	view   *view
	now    *state.State // after the last entry applied since begin
	floor  uint64       // view shows now from this index on, so that it does not go back when Raft is restarted
	failed func(error)  // is called once, with stop
	stop   error        // why no further entry can be applied; nil: there is no such reason

	logged    atomic.Int64  // bytes of log since the last snapshot
	next      atomic.Int64  // full is signalled when logged reaches it
	limit     int64         // next after a snapshot
	full      chan struct{} // capacity 1
	snapshots atomic.Uint64 // that were written
}

// newFSM returns a machine that asks for a snapshot after limit bytes of log, and calls
// failed if it cannot go on.
func newFSM(limit int64, failed func(error)) *fsm {
	f := &fsm{
		view: &view{current: state.New(), changed: make(chan struct{})}, now: state.New(), failed: failed, limit: limit, full: make(chan struct{}, 1),
	}
	f.next.Store(limit)
	return f
}

// begin prepares the machine for a Raft node that restores it from the start. No other node
// may use it any longer.
func (f *fsm) begin() {
	f.now, f.floor = state.New(), f.view.State().Index()
	f.logged.Store(0)
	f.next.Store(f.limit)
}

// publish sets the state that is reached, and shows it to readers.
func (f *fsm) publish(s *state.State) {
	f.now = s
	if s.Index() < f.floor {
		return
	}
	v := f.view
	v.mu.Lock()
	defer v.mu.Unlock()
	v.current = s
	close(v.changed)
	v.changed = make(chan struct{})
}

// Apply implements raft.FSM. It returns a state.Result. After an entry that this version
// does not know it applies no other.
func (f *fsm) Apply(l *raft.Log) any {
	if f.stop != nil {
		return state.Result{Err: f.stop}
	}
	next, result := f.now.Apply(l.Index, l.Data)
	if errors.Is(result.Err, state.ErrUnknownEntry) {
		f.stop = result.Err
		f.failed(result.Err)
		return result
	}
	f.publish(next)
	if logged := f.logged.Add(int64(len(l.Data)) + entryOverhead); logged >= f.next.Load() {
		f.next.Store(logged + f.limit/4) // if the snapshot fails
		select {
		case f.full <- struct{}{}:
		default:
		}
	}
	return result
}

// Snapshot implements raft.FSM. It costs nothing, since states never change.
func (f *fsm) Snapshot() (raft.FSMSnapshot, error) {
	if f.stop != nil {
		return nil, f.stop
	}
	return &snapshot{fsm: f, state: f.now, logged: f.logged.Load()}, nil
}

// Restore implements raft.FSM.
func (f *fsm) Restore(src io.ReadCloser) error {
	if f.stop != nil {
		return f.stop
	}
	s, err := state.Decode(src)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	f.logged.Store(0)
	f.next.Store(f.limit)
	f.publish(s)
	return nil
}

// snapshot is a state that is written while others follow it.
type snapshot struct {
	fsm    *fsm
	state  *state.State
	logged int64
}

// Persist implements raft.FSMSnapshot.
func (s *snapshot) Persist(sink raft.SnapshotSink) error {
	if err := s.state.Encode(sink); err != nil {
		return err // Raft cancels the sink
	}
	if err := sink.Close(); err != nil {
		return err
	}
	s.fsm.logged.Add(-s.logged)
	s.fsm.next.Store(s.fsm.limit)
	s.fsm.snapshots.Add(1)
	return nil
}

// Release implements raft.FSMSnapshot.
func (s *snapshot) Release() {}
