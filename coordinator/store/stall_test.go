package store

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/harness/testkit"
)

// A leader that is stopped in the middle of a snapshot does not hold up the follower:
// Raft reads it in its main loop, and the follower could neither vote nor follow.
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

// What a leader heard of a transfer in an earlier leadership does not restart Raft in a
// later one; a transfer that hangs does.
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
	if err := leader.TransferTo(testkit.Context(t), follower.config.ID); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "change of leader", func() bool { return follower.IsLeader() && refused.since.Load() == nil })
	if n := follower.Restarts(); n != 0 {
		t.Errorf("Raft was restarted %d times", n)
	}
	c.propose(memberEntry(1))
	refused.since.Store(&long)
	if !hangs() {
		t.Error("a transfer that hangs is not noticed")
	}
}

// A store whose Raft does not end closes all the same, so that the process can.
func TestStuckRaftEndsTheProcess(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, nil)
	c.propose(memberEntry(0))
	s := c.leader()
	n := s.node.Load()
	release, inside := make(chan struct{}), make(chan struct{})
	go n.once.Do(func() {
		close(inside)
		<-release
		n.err = n.close()
	})
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

// A peer may be silent for as long as it likes between requests, not within one.
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
