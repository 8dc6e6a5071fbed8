package store

import (
	"time"

	"github.com/hashicorp/raft"
)

// Phase says how far a node is. See DESIGN.md, A node that starts.
type Phase string

// The phases.
const (
	PhaseNew     Phase = "new"     // it is not settled how it begins
	PhaseOpening Phase = "opening" // it reads its log
	PhaseJoining Phase = "joining" // its log is empty; a leader has to add it
	PhaseMember  Phase = "member"  // it has a log
)

// Answer is what a node says of itself to others.
type Answer struct {
	Phase     Phase
	ID        string
	Directory string
	Cluster   string   // empty: the node belongs to none yet
	Founders  []Server // that the cluster began with; empty if the node was added
	Seeded    bool     // true if a new node was restored from a backup
	RaftAddr  string   // host:port
	// Peers and Heartbeat must be the same on all nodes that begin a cluster.
	Peers     string
	Heartbeat time.Duration

	Term uint64 // of Raft; 0 before the log is open
	Last uint64 // index of its last entry
	// Members lists the servers of the latest configuration that the node knows to be committed,
	// and Voters the IDs of those that vote. Both are empty if it knows none.
	Members []Server
	Voters  []string
}

// Answer says how this node is.
func (s *Store) Answer() Answer {
	n := s.life.Load()
	a := s.folder.Answer()
	a.Term, a.Last, a.Phase = n.raft.CurrentTerm(), n.raft.LastIndex(), PhaseMember
	if a.Last == 0 {
		a.Phase = PhaseJoining
	}
	if c := n.raft.GetConfiguration(); c.Index() <= n.raft.CommitIndex() {
		for _, m := range c.Configuration().Servers {
			one := parseServer(m.ID, m.Address)
			a.Members = append(a.Members, one)
			if m.Suffrage == raft.Voter {
				a.Voters = append(a.Voters, one.ID)
			}
		}
	}
	return a
}
