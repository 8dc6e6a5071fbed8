package store

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/protocol"
)

// Leadership delivers whether this node leads Raft, at each change. A value waits
// for its reader; if others follow meanwhile only the last is delivered, so that a
// true may follow a true: the office was lost and won again in between, and needs
// a new Lead. The channel has one reader and is closed by Close.
func (s *Store) Leadership() <-chan bool { return s.leadership }

// relay reads what Raft notifies at once, since Raft waits for it, and passes the
// latest on.
func (s *Store) relay() {
	var out chan bool // nil while there is nothing to deliver
	var latest bool
	down := s.down
	for {
		select {
		case latest = <-s.notify:
			s.handing.Store(nil) // it was noted in the leadership before
			out = s.leadership
		case out <- latest:
			out = nil
		case <-down: // Raft's own last word may be lost in its shutdown
			down, latest, out = nil, false, s.leadership
		case <-s.quit:
			return
		}
	}
}

// Leader returns the node that leads Raft as far as this one knows, and its Raft
// address; both are empty while there is none.
func (s *Store) Leader() (id, addr string) {
	a, i := s.raft().LeaderWithID()
	leader := parseServer(i, a)
	return leader.ID, leader.RaftAddr
}

// IsLeader reports whether this node believes that it leads Raft; VerifyLeader
// asks the others.
func (s *Store) IsLeader() bool {
	_, id := s.raft().LeaderWithID()
	return id == s.self.raftID()
}

// Lead makes node the leader in the replicated state, and returns the epoch. From
// then on entries of earlier epochs are refused, by every node. All entries of
// earlier leaders have been applied here when it returns.
func (s *Store) Lead(ctx context.Context, node string) (epoch uint64, err error) {
	return Lead(ctx, s, node)
}

// Proposer is a replicated log that a Lead entry goes into.
type Proposer interface {
	Propose(ctx context.Context, entry []byte) (index uint64, value any, err error)
	State() *state.State
}

// Lead makes node the leader in the state of any replicated log: see Store.Lead.
func Lead(ctx context.Context, s Proposer, node string) (epoch uint64, err error) {
	nonce := rand.Text()
	entry := protocol.EncodeEntry(protocol.EntryLead, &protocol.LeadEntry{Node: node, Nonce: nonce})
	index, _, err := s.Propose(ctx, entry)
	if err != nil {
		return 0, err
	}
	if now := s.State(); now.Epoch() != index || now.Nonce() != nonce {
		return 0, fmt.Errorf("store: leader epoch %d: %w: %s leads since epoch %d", index, state.ErrStaleEpoch, now.Leader(), now.Epoch())
	}
	return index, nil
}
