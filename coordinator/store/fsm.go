package store

import (
	"fmt"
	"io"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"github.com/coppice-ldl/coppice/coordinator/state"
)

// fsm adapts the state machine to Raft. Apply, Snapshot and Restore are called by
// one goroutine.
type fsm struct {
	view *view
	// now is the state after the last entry applied in this life of the node; view
	// shows it from floor on, so that it does not go back at a restart.
	now   *state.State
	floor uint64
	// failed is called once, with the reason why no further entry can be applied.
	failed func(error)
	stop   error // that reason

	// logged counts the bytes of log since the last snapshot; full is signalled
	// when they pass next.
	logged, next atomic.Int64
	limit        int64
	full         chan struct{} // capacity 1
	snapshots    atomic.Uint64
}

func newFSM(limit int64, failed func(error)) *fsm {
	f := &fsm{view: newView(), now: state.New(), failed: failed, limit: limit, full: make(chan struct{}, 1)}
	f.next.Store(limit)
	return f
}

// begin makes the machine ready for a life of the node, which restores it from the
// start. No other life uses it any more.
func (f *fsm) begin() {
	f.now, f.floor = state.New(), f.view.state().Index()
	f.logged.Store(0)
	f.next.Store(f.limit)
}

// publish makes a state the present one.
func (f *fsm) publish(s *state.State) {
	f.now = s
	if s.Index() >= f.floor {
		f.view.publish(s)
	}
}

// Apply implements raft.FSM; it returns a state.Result. After an entry that this
// version does not know it applies nothing more.
func (f *fsm) Apply(l *raft.Log) any {
	if f.stop != nil {
		return state.Result{Err: f.stop}
	}
	next, result := f.now.Apply(l.Index, l.Data)
	if isUnknown(result.Err) {
		f.stop = result.Err
		f.failed(result.Err)
		return result
	}
	f.publish(next)
	f.count(int64(len(l.Data)) + entryOverhead)
	return result
}

// count asks for a snapshot once enough log has come in, and again after another
// quarter should it have failed.
func (f *fsm) count(n int64) {
	logged := f.logged.Add(n)
	if logged < f.next.Load() {
		return
	}
	f.next.Store(logged + f.limit/4)
	select {
	case f.full <- struct{}{}:
	default:
	}
}

// Snapshot implements raft.FSM: it takes a pointer.
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

// snapshot is a state to be written out while others follow it.
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
