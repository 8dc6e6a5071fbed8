package store

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/coppice-ldl/coppice/internal/rtt"
)

// Stats describes the node, for metrics and people.
type Stats struct {
	Role         string // "Leader", "Follower", "Candidate", "Shutdown"
	Term         uint64
	LastIndex    uint64 // in the log here
	CommitIndex  uint64
	AppliedIndex uint64 // of the last entry that State has seen
	// LastContact is the time since the leader was heard; 0 on the leader,
	// negative where none ever was.
	LastContact time.Duration
	LogBytes    int64  // of entries applied since the last snapshot
	Snapshots   uint64 // written by this process
	Peers       int    // coordinators of the cluster, this one included
}

// Stats returns what the node looks like now.
func (s *Store) Stats() Stats {
	return Stats{
		Role: s.raft().State().String(), Term: s.raft().CurrentTerm(), LastIndex: s.raft().LastIndex(),
		CommitIndex: s.raft().CommitIndex(), AppliedIndex: s.State().Index(), LastContact: s.lastContact(),
		LogBytes: s.fsm.logged.Load(), Snapshots: s.fsm.snapshots.Load(), Peers: len(s.Members()),
	}
}

func (s *Store) lastContact() time.Duration {
	if s.IsLeader() {
		return 0
	}
	last := s.raft().LastContact()
	if last.IsZero() {
		return -1
	}
	return time.Since(last)
}

// RoundTrips returns the round trips to the other coordinators, by id, that this one
// measured lately: the leader by its heartbeats, one that stands for election by asking
// the others whether it may.
func (s *Store) RoundTrips() map[string]rtt.Estimate {
	n := s.life.Load()
	if n == nil {
		return nil
	}
	return n.gate.trips.Since(tripsKept)
}

// tripsKept is for how long a round trip counts that is not measured again.
const tripsKept = 30 * time.Second

// LogDir is the folder of the log's files.
func (s *Store) LogDir() string { return filepath.Join(s.config.Dir, logName) }

// Snapshot writes a snapshot now and drops the log before it. The store does so
// by itself when Config.SnapshotLogBytes of log have come in.
func (s *Store) Snapshot() error {
	if err := s.raft().Snapshot().Error(); err != nil {
		return fmt.Errorf("store: cannot write a snapshot: %w", err)
	}
	return nil
}
