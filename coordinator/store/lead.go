package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/protocol"
)

// leadership tells one reader whether the node leads Raft, and hands the leadership over.
type leadership struct {
	supervisor *supervisor
	transfer   *transfer
	changes    chan bool
}

// Leadership delivers whether this node leads Raft, at each change. A value waits for its
// reader. If others follow meanwhile, only the last is delivered. So a true may follow a
// true: the leadership was lost and won again, and needs a new Lead. The channel has one
// reader and is closed by Close.
func (l *leadership) Leadership() <-chan bool { return l.changes }

// relay reads Raft's notifications at once, since Raft waits for it, and delivers the
// latest. It runs until quit is closed.
func (l *leadership) relay(quit <-chan struct{}) {
	var out chan bool // nil if there is nothing to deliver
	var latest bool
	down := l.supervisor.life.down
	for {
		select {
		case latest = <-l.supervisor.notify:
			l.transfer.forget()
			out = l.changes
		case out <- latest:
			out = nil
		case <-down: // Raft's last notification may be lost in its shutdown
			down, latest, out = nil, false, l.changes
		case <-quit:
			return
		}
	}
}

// errHangs says that a transfer of the leadership has not ended: Raft accepts no entries
// meanwhile, perhaps for ever (hashicorp/raft#696).
var errHangs = errors.New("store: the transfer of the leadership did not end in time")

// HandOver makes another voter the leader within Timeouts.HandOver: a certain one if to is
// not empty. If Raft hangs in the transfer, it is restarted in this process, which also
// ends the leadership here: the others elect a leader.
func (l *leadership) HandOver(ctx context.Context, to string) error {
	v := l.supervisor
	if !v.IsLeader() {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, v.config.timeouts.HandOver)
	defer cancel()
	var err error
	if to == "" {
		err = l.TransferLeadership(limited)
	} else {
		err = l.TransferTo(limited, to)
	}
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case l.stuck(ctx):
		return v.restart(errHangs)
	case !v.IsLeader():
		return nil
	}
	return err
}

// stuck reports whether Raft says for another HandOver that a transfer is under way, after
// it should have ended.
func (l *leadership) stuck(ctx context.Context) bool {
	v := l.supervisor
	limited, cancel := context.WithTimeout(ctx, v.config.timeouts.HandOver)
	defer cancel()
	tick := time.NewTicker(v.config.timeouts.RaftCommit)
	defer tick.Stop()
	for {
		err := v.await(limited, func(r *raft.Raft) error { return r.Barrier(v.config.patience()).Error() })
		if limited.Err() == nil && !errors.Is(err, raft.ErrLeadershipTransferInProgress) {
			return false
		}
		select {
		case <-limited.Done():
			return ctx.Err() == nil && v.IsLeader()
		case <-tick.C:
		}
	}
}

// TransferLeadership makes another node the leader, and returns when this one is not any
// longer. The error is ErrNotLeader, or says that no other node took over within the time
// of an election: then this node still leads.
func (l *leadership) TransferLeadership(ctx context.Context) error {
	return l.transferred(ctx, func(r *raft.Raft) error { return r.LeadershipTransfer().Error() })
}

// TransferTo is TransferLeadership to the voter of a coordinator.
func (l *leadership) TransferTo(ctx context.Context, id string) error {
	if id == l.supervisor.config.ID {
		return nil
	}
	return l.transferred(ctx, func(r *raft.Raft) error {
		for _, m := range r.GetConfiguration().Configuration().Servers {
			if m.Suffrage == raft.Voter && parseServer(m.ID, m.Address).ID == id {
				return r.LeadershipTransferToServer(m.ID, m.Address).Error()
			}
		}
		return fmt.Errorf("coordinator %q has no vote", id)
	})
}

func (l *leadership) transferred(ctx context.Context, call func(*raft.Raft) error) error {
	err := l.supervisor.await(ctx, call)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, raft.ErrNotLeader):
		return l.supervisor.translate(err)
	}
	return fmt.Errorf("store: transferring the leadership: %w", err)
}

// abdicate transfers the leadership before the store closes, if this node has it and
// another one can have it.
func (l *leadership) abdicate() {
	v := l.supervisor
	voters := 0
	for _, m := range v.Members() {
		if m.Voter {
			voters++
		}
	}
	if v.raft().State() != raft.Leader || voters < 2 {
		return
	}
	done := make(chan error, 1)
	go func() { done <- v.raft().LeadershipTransfer().Error() }()
	select {
	case <-done: // elected or not, the others continue
	case <-v.life.down:
	case <-time.After(2 * v.config.election()):
	}
}

// Proposer is a replicated log that a Lead entry can be put into.
type Proposer interface {
	Propose(ctx context.Context, entry []byte) (index uint64, value any, err error)
	State() *state.State
}

// Lead makes a node the leader in the replicated state, and returns the epoch. From then on
// every node refuses entries of earlier epochs. When Lead returns, all entries of earlier
// leaders have been applied here.
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
