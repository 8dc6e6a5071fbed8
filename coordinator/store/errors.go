package store

import (
	"errors"
	"fmt"

	"github.com/hashicorp/raft"
)

var (
	// ErrNotLeader: only the leader takes entries. Nothing has been written. The
	// error is a *NotLeaderError.
	ErrNotLeader = errors.New("not the leader")
	// ErrAmbiguous: nobody can tell yet whether the entry is in the log; it may
	// still be applied, under this leader or the next. Entries are made so that
	// proposing them again does no harm: by epoch, round, token or name.
	ErrAmbiguous = errors.New("the outcome is unknown")
	// ErrClosed: Close was called. Nothing has been written.
	ErrClosed = errors.New("store: closed")
	// ErrLocked: another process has the folder.
	ErrLocked = errors.New("in use by another process")
	// ErrCorrupt: a file has not its checksum, or entries that were acknowledged
	// are not in it. The error names the file.
	ErrCorrupt = errors.New("corrupt")
	// ErrFolder: the folder is not one of this node, or of this version.
	ErrFolder = errors.New("not a folder of this coordinator")
)

// NotLeaderError names the leader, where this node knows one.
type NotLeaderError struct{ Leader string }

func (e *NotLeaderError) Error() string {
	if e.Leader == "" {
		return "store: this coordinator is not the leader, and knows no leader at the moment"
	}
	return fmt.Sprintf("store: this coordinator is not the leader; the leader is %s", e.Leader)
}

// Is makes errors.Is(err, ErrNotLeader) hold.
func (e *NotLeaderError) Is(target error) bool { return target == ErrNotLeader }

// translate turns Raft's error about a proposal into one of this package.
func (s *Store) translate(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipTransferInProgress):
		leader, _ := s.Leader()
		if leader == s.config.ID { // on its way out
			leader = ""
		}
		return &NotLeaderError{Leader: leader}
	}
	// ErrLeadershipLost, ErrRaftShutdown, ErrEnqueueTimeout, and whatever the disk
	// says: the entry may be on some disks already.
	return fmt.Errorf("store: %w: %w", ErrAmbiguous, err)
}
