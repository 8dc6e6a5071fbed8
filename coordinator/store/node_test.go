package store

import (
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/protocol"
)

// An entry of a newer version stops a node, each time it comes to it, and nothing
// after it is applied.
func TestUnknownEntryStops(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, nil)
	last := c.propose(memberEntry(0))
	s := c.leader()
	unknown := s.ProposeAsync([]byte{protocol.Version, 200, '{', '}'})
	if _, _, err := unknown.Result(); !errors.Is(err, state.ErrUnknownEntry) {
		t.Fatalf("an unknown entry: %v", err)
	}
	<-s.Down()
	if !errors.Is(s.Err(), state.ErrUnknownEntry) {
		t.Errorf("it stopped for %v", s.Err())
	}
	if _, _, err := s.Propose(testkit.Context(t), memberEntry(1)); !errors.Is(err, state.ErrUnknownEntry) {
		t.Errorf("a stopped node answers %v", err)
	}
	if s.Snapshot() == nil {
		t.Error("a stopped node writes a snapshot beyond the entry")
	}
	if got := s.State().Index(); got != last {
		t.Errorf("it applied up to %d, want %d", got, last)
	}
	c.close("a")
	again := c.start("a", nil)
	<-again.Down()
	checkMembers(t, again.State(), 1)
}

// Proposals of one goroutine keep their order without waiting for each other.
func TestProposeAsyncOrder(t *testing.T) {
	t.Parallel()
	const n = 100
	c := newCluster(t, 3, nil)
	for !proposeInOrder(t, c.leader(), n) {
		t.Log("the leader changed: once more")
	}
	s := c.leader()
	if err := s.Barrier(testkit.Context(t)); err != nil {
		t.Error(err)
	}
	checkMembers(t, s.State(), n)
}

// proposeInOrder reports whether all entries were acknowledged.
func proposeInOrder(t *testing.T, s *Store, n int) bool {
	t.Helper()
	var futures []*Future
	for i := range n {
		futures = append(futures, s.ProposeAsync(memberEntry(i)))
	}
	var last uint64
	for i, f := range futures {
		index, _, err := f.Result()
		if errors.Is(err, ErrNotLeader) || errors.Is(err, ErrAmbiguous) {
			return false
		}
		if err != nil || index <= last {
			t.Fatalf("proposal %d has index %d, the one before %d: %v", i, index, last, err)
		}
		last = index
	}
	return true
}

// Close answers whoever still waits, and leaves nothing running (see TestMain).
func TestCloseWhileProposing(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	s := c.leader()
	acknowledged := make([]bool, 400)
	var group sync.WaitGroup
	for w := range 4 {
		group.Go(func() {
			for i := w; i < len(acknowledged); i += 4 {
				_, _, err := s.ProposeAsync(memberEntry(i)).Result()
				acknowledged[i] = err == nil
			}
		})
	}
	if _, err := s.Wait(testkit.Context(t), s.State().Index()+20); err != nil {
		t.Fatal(err)
	}
	c.close(s.config.ID)
	group.Wait()
	c.wait(c.propose(memberEntry(len(acknowledged))))
	for i, ok := range acknowledged {
		if _, there := c.leader().State().Member(memberID(i)); ok && !there {
			t.Errorf("acknowledged entry %d is lost", i)
		}
	}
}

// The last change of leadership is never dropped, and Raft never waits.
func TestLeadershipKeepsTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(Config{ID: "a", SnapshotLogBytes: 1, Logger: slog.New(slog.DiscardHandler)}, nil)
		s.work.Go(func() { s.relay(s.quit) })
		for range 50 { // more than the channel holds
			s.notify <- true
			s.notify <- false
		}
		s.notify <- true
		synctest.Wait()
		if !<-s.Leadership() {
			t.Error("the last change is lost")
		}
		synctest.Wait()
		select {
		case v := <-s.Leadership():
			t.Errorf("%v is delivered after the last change", v)
		default:
		}
		s.stop(errors.New("cannot follow"))
		synctest.Wait()
		if <-s.Leadership() {
			t.Error("a node that stopped still leads")
		}
		close(s.quit)
		s.work.Wait()
	})
}

func TestLeadership(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, calm)
	s := c.leader()
	if !<-s.Leadership() {
		t.Error("the leader is told that it is not")
	}
	if err := s.TransferLeadership(testkit.Context(t)); err != nil {
		t.Fatal(err)
	}
	if <-s.Leadership() {
		t.Error("a former leader is told that it leads")
	}
	c.close(s.config.ID)
	for range s.Leadership() { // ends when it is closed
	}
}

func TestStats(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, calm)
	last := c.propose(memberEntry(0))
	c.wait(last)
	leader := c.leader()
	got := leader.Stats()
	if got.Role != "Leader" || got.Term == 0 || got.AppliedIndex != last || got.CommitIndex < last || got.LastContact != 0 ||
		got.LogBytes == 0 || got.Peers != 3 {
		t.Errorf("the leader's: %+v", got)
	}
	got = c.followers(leader)[0].Stats()
	if got.Role != "Follower" || got.LastContact <= 0 || got.LastContact > testkit.Limit {
		t.Errorf("a follower's: %+v", got)
	}
	if id, addr := leader.Leader(); id != leader.config.ID || addr != leader.Addr() {
		t.Errorf("the leader is %s at %s", id, addr)
	}
}
