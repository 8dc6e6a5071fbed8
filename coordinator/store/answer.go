package store

import "github.com/hashicorp/raft"

// Phase says how far a node is. See DESIGN.md, A node that starts.
type Phase string

// The phases.
const (
	PhaseNew        Phase = "new"        // its folder is empty; it waits until it may begin a cluster
	PhaseBegun      Phase = "begun"      // it has the first entry of a cluster and no other
	PhaseOpening    Phase = "opening"    // it reads its log
	PhaseJoining    Phase = "joining"    // its log is empty; a leader is to add it
	PhaseLost       Phase = "lost"       // it has forgotten its term, and asks for it; Raft does not run
	PhaseRecovering Phase = "recovering" // it has lost a part of its log, and does not vote until it is here again
	PhaseMember     Phase = "member"     // it has a log
)

// proven reports whether a node's term is at least any in which it has voted or
// acknowledged something that counted.
func (p Phase) proven() bool {
	return p == PhaseBegun || p == PhaseJoining || p == PhaseRecovering || p == PhaseMember
}

// Answer is what a node says of itself to one that starts.
type Answer struct {
	Phase Phase
	// Mark is the name that a new folder has drawn; Founders has, on a node that has
	// begun, the marks of the new folders that it began with, by node.
	Mark     string
	Founders map[string]string
	Term     uint64 // of Raft; 0 where the node has none
	Last     uint64 // index of its last entry
	Leads    bool   // it led in this term when its last entry was Last
	// Voters lists who votes, where it knows that to be committed; else it is empty.
	Voters []string
}

// Answer says how this node is.
func (s *Store) Answer() Answer {
	n := s.life.Load()
	a := Answer{Term: n.raft.CurrentTerm(), Leads: n.raft.State() == raft.Leader, Last: n.raft.LastIndex()}
	if n.raft.CurrentTerm() != a.Term { // the three are not of one term
		a.Leads = false
	}
	switch {
	case n.gate.recovering():
		a.Phase = PhaseRecovering
	case a.Last == 0:
		a.Phase = PhaseJoining
	case a.Last == 1:
		a.Phase, a.Founders = PhaseBegun, s.folder.founders
	default:
		a.Phase = PhaseMember
	}
	if c := n.raft.GetConfiguration(); c.Index() <= n.raft.CommitIndex() {
		a.Voters = voting(c.Configuration())
	}
	return a
}

func voting(c raft.Configuration) (ids []string) {
	for _, m := range c.Servers {
		if m.Suffrage == raft.Voter {
			ids = append(ids, string(m.ID))
		}
	}
	return ids
}
