package store

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/protocol"
)

// TestUnknownEntryStops: an entry of a newer version stops a node, each time it comes to
// it, and nothing after it is applied.
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

// TestProposeAsyncOrder: proposals of one goroutine keep their order without waiting for
// each other.
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

// TestCloseWhileProposing: Close answers all proposals, and leaves nothing running (see
// TestMain).
func TestCloseWhileProposing(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, calm)
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
		t.Fatalf("%v; %+v, restarts %d, trouble %v", err, s.Stats(), s.Restarts(), s.Trouble())
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

// TestLeadershipKeepsTheLast: the last change of leadership is never dropped, and Raft
// never waits.
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
	if err := s.TransferTo(testkit.Context(t), ""); err != nil {
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
	if got.Role != "Leader" || got.Term == 0 || got.AppliedIndex != last || got.CommitIndex < last ||
		got.LastContact != 0 ||
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

// TestLeaderStopsWithinASnapshot: a leader that is stopped in the middle of a snapshot does
// not hold up the follower: Raft reads it in its main loop, and the follower could neither
// vote nor follow.
func TestLeaderStopsWithinASnapshot(t *testing.T) {
	t.Parallel()
	const n, pieces = 300, 100 // of 4 KiB: more than the connection buffers
	held, stopped := make(chan struct{}), make(chan struct{})
	var sent atomic.Int64
	c := newCluster(t, 3, func(c *Config) {
		c.SnapshotLogBytes, c.SegmentBytes = 256<<10, 256<<10
		c.fault = func(op string) error {
			if op == "install" && sent.Add(1) == pieces {
				close(stopped)
				<-held
			}
			return nil
		}
	})
	t.Cleanup(func() { close(held) }) // before the nodes are closed
	c.propose(bulkEntry(0))
	late := c.followers(c.leader())[0].config.ID
	c.kill(late)
	var last uint64
	for i := 1; i < n; i++ {
		last = c.propose(bulkEntry(i))
	}
	c.wait(last)
	for _, s := range c.nodes {
		testkit.Until(t, "snapshot", func() bool { return s.Stats().Snapshots > 0 })
	}
	s := c.start(late, nil)
	testkit.Receive(t, "a snapshot", stopped)
	testkit.Until(t, "half a snapshot", func() bool { return left(t, filepath.Join(c.dir, late)) > 0 })
	ctx, cancel := context.WithTimeout(context.Background(), 6*s.config.patience())
	defer cancel()
	if err := s.VerifyLeader(ctx); err != nil && ctx.Err() != nil { // any answer will do
		t.Fatalf("the follower hangs: %v", err)
	}
}

// TestOldTransferIsForgotten: a transfer in an earlier leadership does not restart Raft in
// a later one; a transfer that hangs does.
func TestOldTransferIsForgotten(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	c.propose(memberEntry(0))
	leader := c.leader()
	follower := c.followers(leader)[0]
	long := time.Now().Add(-time.Hour)
	refused := follower.leadership.transfer
	hangs := func() bool {
		return refused.hangs(follower.IsLeader(), time.Now(), 2*follower.config.timeouts.HandOver)
	}
	refused.since.Store(&long)
	if hangs() || refused.since.Load() != nil {
		t.Error("one that does not lead takes an old transfer for a hanging one")
	}
	refused.since.Store(&long)
	testkit.Until(t, "change of leader", func() bool {
		if l := c.leader(); l != follower { // on a busy machine, a transfer may fail, or another may be elected
			_ = l.TransferTo(testkit.Context(t), follower.config.ID)
			return false
		}
		return refused.since.Load() == nil
	})
	if n := follower.Restarts(); n != 0 {
		t.Errorf("Raft was restarted %d times", n)
	}
	c.propose(memberEntry(1))
	refused.since.Store(&long)
	if !hangs() {
		t.Error("a transfer that hangs is not noticed")
	}
}

// TestStuckRaftEndsTheProcess: a store closes even if its Raft does not end, so that the
// process can end.
func TestStuckRaftEndsTheProcess(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, nil)
	c.propose(memberEntry(0))
	s := c.leader()
	n := s.node.Load()
	release, inside := make(chan struct{}), make(chan struct{})
	n.end = sync.OnceValue(func() error {
		close(inside)
		<-release
		return n.close()
	})
	go n.end()
	<-inside
	s.stop(errStuck)
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	if err := testkit.Receive(t, "the end, though one thing never ends", closed); !errors.Is(err, errStuck) {
		t.Errorf("closed: %v", err)
	}
	close(release)
	<-n.ended
	delete(c.nodes, s.config.ID)
}

// TestSilenceWithinARequest: a peer may be silent for as long as it likes between requests,
// not within one.
func TestSilenceWithinARequest(t *testing.T) {
	t.Parallel()
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	g := &guard{Conn: near, requests: true, patience: time.Minute}
	all := requests(t)
	go func() {
		far.Write(all)     // whole requests
		far.Write(all[:9]) // and a part of one
	}()
	var b [4096]byte
	for got := 0; got < len(all); {
		n, err := g.Read(b[:min(len(b), len(all)-got)])
		if got += n; err != nil {
			t.Fatalf("after %d bytes: %v", got, err)
		}
	}
	if g.arm(); g.armed {
		t.Error("the next request may not be late")
	}
	g.patience = time.Millisecond
	if n, err := g.Read(b[:]); n != 9 || err != nil {
		t.Fatalf("%d bytes, %v", n, err)
	}
	for range 2 { // Raft reads on after the first error
		if _, err := g.Read(b[:]); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("%v", err)
		}
	}
}

// TestPending: the age is from the oldest proposal without an outcome.
func TestPending(t *testing.T) {
	var p pending
	now := time.Now()
	first, second := new(Future), new(Future)
	if age := p.oldest(now); age != 0 {
		t.Errorf("of nothing: %v", age)
	}
	p.add(second, now.Add(-time.Second))
	p.add(first, now.Add(-3*time.Second))
	if age := p.oldest(now); age != 3*time.Second {
		t.Errorf("of two: %v", age)
	}
	p.remove(first)
	if age := p.oldest(now); age != time.Second {
		t.Errorf("of the second: %v", age)
	}
	p.remove(second)
	if age := p.oldest(now); age != 0 {
		t.Errorf("of none any more: %v", age)
	}
}

// TestPendingProposal: a proposal that the disk holds up is pending until it has its
// outcome.
func TestPendingProposal(t *testing.T) {
	t.Parallel()
	var slow atomic.Bool
	held := make(chan struct{})
	c := newCluster(t, 1, func(c *Config) {
		c.fault = func(op string) error {
			if op == "append" && slow.Load() {
				<-held
			}
			return nil
		}
	})
	s := c.leader()
	slow.Store(true)
	f := s.ProposeAsync(memberEntry(1))
	testkit.Until(t, "a pending proposal", func() bool { return s.Pending() > 10*time.Millisecond })
	close(held)
	if _, _, err := f.Result(); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "no pending proposal", func() bool { return s.Pending() == 0 })
}
