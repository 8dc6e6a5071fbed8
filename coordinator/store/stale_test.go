package store

import (
	"context"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/coppice-ldl/coppice/internal/harness/testkit"
)

// puppet speaks to a node as other members of its cluster would.
type puppet struct {
	t    *testing.T
	to   raft.ServerAddress
	net  *raft.NetworkTransport
	last atomic.Uint64 // index of the leader's last entry, as it says
	log  []*raft.Log
}

func newPuppet(t *testing.T, to string) *puppet {
	t.Helper()
	n, err := raft.NewTCPTransport("127.0.0.1:0", nil, 1, time.Second, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() })
	return &puppet{t: t, to: raft.ServerAddress(to), net: n}
}

func header(id string) raft.RPCHeader {
	return raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(id), Addr: []byte(id + ":1")}
}

// append sends the entries from index on, as the leader of a term.
func (p *puppet) append(leader string, term, from uint64) (ok bool, now uint64) {
	p.t.Helper()
	a := &raft.AppendEntriesRequest{RPCHeader: header(leader), Term: term, PrevLogEntry: from - 1, Entries: p.log[from-1:]}
	if from > 1 {
		a.PrevLogTerm = p.log[from-2].Term
	}
	var r raft.AppendEntriesResponse
	if err := p.net.AppendEntries("x", p.to, a, &r); err != nil {
		p.t.Fatal(err)
	}
	return r.Success, r.Term
}

// vote asks for a vote, in a transfer: so that it counts that there is a leader.
func (p *puppet) vote(candidate string, term, lastIndex, lastTerm uint64) bool {
	p.t.Helper()
	q := &raft.RequestVoteRequest{RPCHeader: header(candidate), Term: term, LastLogIndex: lastIndex, LastLogTerm: lastTerm, LeadershipTransfer: true}
	var r raft.RequestVoteResponse
	if err := p.net.RequestVote("x", p.to, q, &r); err != nil {
		p.t.Fatal(err)
	}
	return r.Granted
}

// entries are those of a cluster of a, b and c: who votes, then one of each term.
func entries(terms ...uint64) []*raft.Log {
	var c raft.Configuration
	for _, id := range []string{"a", "b", "c"} {
		c.Servers = append(c.Servers, raft.Server{Suffrage: raft.Voter, ID: raft.ServerID(id), Address: raft.ServerAddress(id + ":1")})
	}
	list := []*raft.Log{{Index: 1, Term: 1, Type: raft.LogConfiguration, Data: raft.EncodeConfiguration(c)}}
	for i, term := range terms {
		list = append(list, &raft.Log{Index: uint64(i + 2), Term: term, Type: raft.LogNoop})
	}
	return list
}

// A node that has forgotten its term acknowledges nothing to a leader of an earlier
// one, and does not vote until it has all that the leader had when it was asked; nor
// twice in one term then.
func TestStaleLeaderOfAForgottenTerm(t *testing.T) {
	t.Parallel()
	c := listed(t)
	var p *puppet
	config := c.config("a", nil)
	config.Ask = func(_ context.Context, id string) (Answer, error) {
		a := Answer{Phase: PhaseMember, Term: 7, Last: 5, Voters: []string{"a", "b", "c"}}
		if id == "c" { // it was stopped, and is still in an earlier term
			a.Term = 4
		}
		if p != nil && id == "b" {
			a.Leads, a.Last = true, p.last.Load()
		}
		return a, nil
	}
	if err := c.decide(testkit.Context(t), c.look(config)); err != nil {
		t.Fatal(err)
	}
	s := c.open(config)
	p = newPuppet(t, s.Addr())
	p.last.Store(5)

	// c leads term 4, and has one entry of its own.
	p.log = entries(2, 4)
	if ok, term := p.append("c", 4, 1); ok || term != 7 {
		t.Errorf("a leader of term 4 is obeyed in term %d: %v", term, ok)
	}
	if p.vote("c", 8, 3, 4) {
		t.Error("it votes with an empty log")
	}
	// b leads term 7, and has five entries, of which a gets three first.
	p.log = entries(2, 2)
	if ok, _ := p.append("b", 7, 1); !ok {
		t.Error("the leader of term 7 is not obeyed")
	}
	recovers := func() bool { return s.Answer().Phase == PhaseRecovering }
	deadline := time.Now().Add(3 * s.config.timeouts.DiskProbe)
	testkit.Until(t, "time for a wrong end of the recovery", func() bool {
		if !recovers() {
			t.Fatal("it votes again without what the leader has")
		}
		return time.Now().After(deadline)
	})
	if p.vote("c", 8, 9, 7) {
		t.Error("it votes while it recovers")
	}
	p.log = entries(2, 2, 7, 7)
	if ok, _ := p.append("b", 7, 4); !ok {
		t.Error("the leader of term 7 is not obeyed")
	}
	testkit.Until(t, "the end of the recovery", func() bool { return !recovers() })
	if p.vote("c", 7, 4, 4) {
		t.Error("it votes twice in a term: the request of one that has not won it comes late")
	}
	if p.vote("c", 8, 4, 4) {
		t.Error("it votes for one that lacks what it has acknowledged")
	}
	if !p.vote("c", 9, 5, 7) {
		t.Error("it does not vote again")
	}
}
