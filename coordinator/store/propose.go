package store

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"github.com/coppice-ldl/coppice/coordinator/state"
)

// Future is a proposal on its way.
type Future struct {
	done  chan struct{}
	index uint64
	value any
	err   error
}

// Done is closed once the outcome is known.
func (f *Future) Done() <-chan struct{} { return f.done }

// Result waits for the outcome: see Store.Propose.
func (f *Future) Result() (index uint64, value any, err error) {
	<-f.done
	return f.index, f.value, f.err
}

// Wait is Result for no longer than ctx; then the outcome is ErrAmbiguous.
func (f *Future) Wait(ctx context.Context) (index uint64, value any, err error) {
	select {
	case <-f.done:
		return f.index, f.value, f.err
	case <-ctx.Done():
		return 0, nil, fmt.Errorf("store: %w: %w", ErrAmbiguous, ctx.Err())
	}
}

// Propose puts an entry into the log and returns, once a majority has it on disk
// and this node has applied it, its index and what state.Result.Value documents.
// Only the leader can: otherwise the error is a *NotLeaderError, and nothing is
// written. ErrAmbiguous (also when ctx ends first) says that the entry may be
// applied, now or later. An error of package state says that the entry is in the
// log and was refused. entry must not change until the outcome is known; at most
// 512 KiB are advised.
func (s *Store) Propose(ctx context.Context, entry []byte) (index uint64, value any, err error) {
	if err := ctx.Err(); err != nil {
		return 0, nil, err
	}
	return s.ProposeAsync(entry).Wait(ctx)
}

// ProposeAsync is Propose without waiting: entries of one goroutine enter the log
// in the order of its calls. While sixteen proposals wait to be written it blocks,
// so nobody gets far ahead of the disk.
func (s *Store) ProposeAsync(entry []byte) *Future {
	f := &Future{done: make(chan struct{})}
	if err := s.begin(); err != nil {
		f.err = err
		close(f.done)
		return f
	}
	began := time.Now()
	s.pending.add(f, began)
	n := s.life.Load()
	applied := n.raft.Apply(entry, s.config.patience())
	go func() {
		defer s.calls.Done()
		s.resolve(f, n, applied)
		s.pending.remove(f)
		if f.index > 0 && s.config.Committed != nil {
			s.config.Committed(time.Since(began))
		}
	}()
	return f
}

// resolve waits for Raft's answer, which a life of the node that ended may owe.
func (s *Store) resolve(f *Future, n *node, applied raft.ApplyFuture) {
	defer close(f.done)
	answer := make(chan error, 1)
	go func() { answer <- applied.Error() }()
	var err error
	select {
	case err = <-answer:
	case <-n.ended:
		err = raft.ErrRaftShutdown
	}
	s.noteHandover(err)
	if f.err = s.translate(err); f.err != nil {
		return
	}
	result := applied.Response().(state.Result)
	f.index, f.value, f.err = applied.Index(), result.Value, result.Err
}

// Barrier returns once this node, the leader, has applied every entry that was in
// the log before the call.
func (s *Store) Barrier(ctx context.Context) error {
	return s.await(ctx, func() error { return s.translate(s.raft().Barrier(s.config.patience()).Error()) })
}

// VerifyLeader returns nil if a majority agrees, during the call, that this node
// leads: a read of State after it is not stale.
func (s *Store) VerifyLeader(ctx context.Context) error {
	return s.await(ctx, func() error { return s.translate(s.raft().VerifyLeader().Error()) })
}
