package store

import (
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"

	"github.com/coppice-ldl/coppice/internal/files"
)

// Raft panics if its term cannot be written or an entry cannot be read. Here the node is
// told of the error first, and the goroutine of Raft that asked ends: nothing follows from
// what failed, and Raft can still be shut down. Its deferred calls answer "no" to the peer
// that is waiting.

// raftStable is the stable store as Raft has it.
type raftStable struct {
	*stable
	fatal func(error)
}

// Set implements raft.StableStore.
func (s raftStable) Set(key, value []byte) error { return s.check(s.stable.Set(key, value)) }

// SetUint64 implements raft.StableStore.
func (s raftStable) SetUint64(key []byte, n uint64) error {
	return s.check(s.stable.SetUint64(key, n))
}

// check returns only if the record is on the disk, or was refused without a fault.
func (s raftStable) check(err error) error {
	switch {
	case err == nil, errors.Is(err, errAbstains):
		return err
	case !errors.Is(err, files.ErrGone):
		err = fmt.Errorf("%w; the coordinator stops, because it cannot save its term and vote: repair the disk with %s, then start it again with the same flags", err, s.path)
	}
	s.fatal(err)
	runtime.Goexit()
	return nil
}

// raftLog is the log as Raft has it.
type raftLog struct{ *diskLog }

// GetLog implements raft.LogStore. An entry that cannot be read counts as a log that cannot
// be written: it is opened again.
func (l raftLog) GetLog(index uint64, e *raft.Log) error {
	err := l.diskLog.GetLog(index, e)
	if err == nil || errors.Is(err, raft.ErrLogNotFound) || errors.Is(err, wal.ErrClosed) {
		return err
	}
	l.fail(fmt.Errorf("store: the Raft log cannot be read: %w", err))
	runtime.Goexit()
	return nil
}

// newRaft is raft.NewRaft with an error in place of a panic.
func newRaft(c *raft.Config, f raft.FSM, log *diskLog, stable raftStable, snapshots raft.SnapshotStore, t raft.Transport) (r *raft.Raft, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				r, err = nil, fmt.Errorf("%v", p)
			}
		}()
		err = io.ErrUnexpectedEOF // if the goroutine ends in raftLog or raftStable
		r, err = raft.NewRaft(c, f, raftLog{log}, stable, snapshots, t)
	}()
	<-done
	return r, err
}
