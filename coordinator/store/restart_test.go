package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/coppice-ldl/coppice/harness/testkit"
)

// faults fails or delays operations of nodes.
type faults struct {
	mu   sync.Mutex
	fail map[string]error         // by "node op"
	hold map[string]chan struct{} // closed by mend
	seen map[string]int
}

func newFaults() *faults {
	return &faults{fail: make(map[string]error), hold: make(map[string]chan struct{}), seen: make(map[string]int)}
}

// of returns the fault function of a node.
func (f *faults) of(node string) func(string) error {
	return func(op string) error {
		f.mu.Lock()
		key := node + " " + op
		f.seen[key]++
		err, hold := f.fail[key], f.hold[key]
		f.mu.Unlock()
		if hold != nil {
			<-hold
		}
		return err
	}
}

func (f *faults) set(node, op string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail[node+" "+op] = err
}

func (f *faults) count(node, op string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen[node+" "+op]
}

// newFaulty starts n nodes with faults that the test sets.
func newFaulty(t *testing.T, n int, tune func(*Config)) (*cluster, *faults) {
	f := newFaults()
	c := newCluster(t, n, func(c *Config) {
		if tune != nil {
			tune(c)
		}
		c.fault = f.of(c.ID)
	})
	return c, f
}

// TestHandOverThatHangs: a transfer that hangs leaves Raft in a state in which it accepts
// no entry (hashicorp/raft#696). Raft is restarted within the process, and the cluster goes
// on with all acknowledged entries.
func TestHandOverThatHangs(t *testing.T) {
	t.Parallel()
	c, f := newFaulty(t, 3, nil)
	for i := range 10 {
		c.propose(memberEntry(i))
	}
	held := make(chan struct{})
	f.mu.Lock()
	for _, p := range c.peers {
		f.hold[p.ID+" timeout-now"] = held
	}
	f.mu.Unlock()
	defer close(held)
	s := c.leader()
	before := s.State().Index()
	began := time.Now()
	if err := s.HandOver(testkit.Context(t), ""); err != nil {
		t.Fatalf("the handover: %v", err)
	}
	t.Logf("handed over by a restart in %v", time.Since(began))
	if s.Restarts() != 1 {
		t.Errorf("%d restarts, want 1", s.Restarts())
	}
	if got := s.State().Index(); got < before {
		t.Errorf("the state went back from %d to %d", before, got)
	}
	c.wait(c.propose(memberEntry(10)))
	for _, s := range c.nodes {
		checkMembers(t, s.State(), 11)
	}
}

// TestTransferThatHangsIsNoticed: refused proposals reveal that Raft hangs in a transfer,
// even if HandOver was not called.
func TestTransferThatHangsIsNoticed(t *testing.T) {
	t.Parallel()
	c, f := newFaulty(t, 3, nil)
	c.propose(memberEntry(0))
	held := make(chan struct{})
	f.mu.Lock()
	for _, p := range c.peers {
		f.hold[p.ID+" timeout-now"] = held
	}
	f.mu.Unlock()
	defer close(held)
	s := c.leader()
	if err := s.TransferTo(testkit.Context(t), ""); err == nil {
		t.Fatal("the transfer succeeded")
	}
	testkit.Until(t, "restart", func() bool {
		if _, _, err := s.Propose(testkit.Context(t), memberEntry(1)); err == nil && s.Restarts() == 0 {
			t.Fatal("a proposal passed: Raft does not hang")
		}
		return s.Restarts() == 1
	})
	c.propose(memberEntry(1))
}

// TestHandOver: a healthy handover needs no restart.
func TestHandOver(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, calm)
	s := c.leader()
	to := c.followers(s)[1].config.ID
	if err := s.HandOver(testkit.Context(t), to); err != nil {
		t.Fatal(err)
	}
	if got := c.leader().config.ID; got != to || s.Restarts() != 0 {
		t.Errorf("%s leads, %d restarts", got, s.Restarts())
	}
	if err := s.HandOver(testkit.Context(t), ""); err != nil {
		t.Errorf("a follower: %v", err)
	}
}

// TestLogFailsOnTheLeader: a leader that cannot write its log loses the leadership,
// acknowledges only entries on disks, says so, is no candidate, and recovers when there is
// room.
func TestLogFailsOnTheLeader(t *testing.T) {
	t.Parallel()
	c, f := newFaulty(t, 3, nil)
	n := 0
	for ; n < 10; n++ {
		c.propose(memberEntry(n))
	}
	s := c.leader()
	id := s.config.ID
	for _, op := range []string{"append", "room"} {
		f.set(id, op, fmt.Errorf("no %s: %w", op, syscall.ENOSPC))
	}
	tried := f.count(id, "append")
	if _, _, err := s.Propose(testkit.Context(t), memberEntry(n)); !errors.Is(err, ErrAmbiguous) &&
		!errors.Is(err, ErrNotLeader) {
		t.Errorf("a leader whose disk is full answers %v", err)
	}
	testkit.Until(t, "loss of office", func() bool { return !s.IsLeader() })
	if err := s.Trouble(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("it says %v", err)
	}
	for ; n < 30; n++ {
		c.propose(memberEntry(n))
		if s.IsLeader() {
			t.Fatal("it leads with a full disk")
		}
	}
	if got := f.count(id, "append") - tried; got != 1 {
		t.Errorf("%d appends were tried, want one: the log had failed then", got)
	}
	if s.Restarts() != 0 {
		t.Error("it was restarted without room")
	}
	f.set(id, "append", nil)
	f.set(id, "room", nil)
	last := c.propose(memberEntry(n))
	if _, err := s.Wait(testkit.Context(t), last); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "end of trouble", func() bool { return s.Trouble() == nil })
	checkMembers(t, s.State(), n+1)
	if s.Restarts() != 1 {
		t.Errorf("%d restarts, want 1", s.Restarts())
	}
	testkit.Until(t, "office for it again", func() bool {
		return c.leader().HandOver(testkit.Context(t), id) == nil && s.IsLeader()
	})
}

// TestLogFailsAlone: a coordinator alone also recovers by itself, with all acknowledged
// entries.
func TestLogFailsAlone(t *testing.T) {
	t.Parallel()
	c, f := newFaulty(t, 1, nil)
	n := 0
	for ; n < 5; n++ {
		c.propose(memberEntry(n))
	}
	s := c.nodes["a"]
	f.set("a", "append", syscall.ENOSPC)
	f.set("a", "room", syscall.ENOSPC)
	if _, _, err := s.Propose(testkit.Context(t), memberEntry(n)); err == nil {
		t.Error("acknowledged without a disk")
	}
	f.set("a", "append", nil)
	f.set("a", "room", nil)
	c.propose(memberEntry(n))
	checkMembers(t, s.State(), n+1)
}

// TestFullDisk: a file system of a few megabytes is full.
func TestFullDisk(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounting a small file system needs root")
	}
	small := t.TempDir()
	if err := syscall.Mount("tmpfs", small, "tmpfs", 0, "size=8m"); err != nil {
		t.Skipf("a small file system cannot be mounted: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(small, 0); err != nil {
			t.Error(err)
		}
	})
	c := newCluster(t, 3, func(c *Config) {
		if c.SegmentBytes = 1 << 20; c.ID == "a" {
			c.Dir = filepath.Join(small, "a")
		}
	})
	n := 0
	c.propose(bulkEntry(n))
	hog := filepath.Join(small, "hog")
	fill(t, hog)
	for s := c.nodes["a"]; s.Trouble() == nil; { // until it needs another file
		n++
		c.propose(bulkEntry(n))
		if n > 2000 {
			t.Fatal("a full disk was not noticed")
		}
	}
	t.Logf("full after %d entries: %v", n, c.nodes["a"].Trouble())
	for range 20 {
		n++
		c.propose(bulkEntry(n))
	}
	if c.leader().config.ID == "a" {
		t.Error("the node with the full disk leads")
	}
	if err := os.Remove(hog); err != nil {
		t.Fatal(err)
	}
	n++
	c.wait(c.propose(bulkEntry(n)))
	checkMembers(t, c.nodes["a"].State(), n+1)
	c.close("a")
	c.start("a", nil) // the log is whole
	n++
	c.wait(c.propose(bulkEntry(n)))
	checkMembers(t, c.nodes["a"].State(), n+1)
}

// fill writes a file until the disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size > 0; {
		if _, err := f.Write(make([]byte, size)); errors.Is(err, syscall.ENOSPC) {
			size /= 2
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// TestRestartKeepsReaders: during a restart, the wait for a state ends with its context.
func TestRestartKeepsReaders(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	var last uint64
	for i := range 50 {
		last = c.propose(memberEntry(i))
	}
	c.wait(last)
	s := c.leader()
	ctx, cancel := context.WithCancel(testkit.Context(t))
	defer cancel()
	back := make(chan uint64, 1)
	var watch sync.WaitGroup
	watch.Go(func() { // the state never goes back
		high := uint64(0)
		for ctx.Err() == nil {
			now, changed := s.Watch()
			if now.Index() < high {
				back <- now.Index()
				return
			}
			high = now.Index()
			select {
			case <-changed:
			case <-ctx.Done():
			}
		}
	})
	if err := s.restart(errors.New("test")); err != nil {
		t.Fatal(err)
	}
	c.wait(c.propose(memberEntry(50)))
	cancel()
	watch.Wait()
	select {
	case i := <-back:
		t.Errorf("the state went back to %d after %d", i, last)
	default:
	}
	checkMembers(t, s.State(), 51)
}

// TestReplayIsNotShown: while a new Raft node replays the log, readers keep the state that
// they had.
func TestReplayIsNotShown(t *testing.T) {
	f := newFSM(1<<40, func(err error) { t.Error(err) })
	const n = 5
	for life := range 2 {
		f.begin()
		for i := range uint64(n + 1) {
			f.Apply(&raft.Log{Index: i + 1, Data: memberEntry(int(i))})
			want := i + 1
			if life == 1 {
				want = max(want, n+1)
			}
			if got := f.view.State().Index(); got != want {
				t.Errorf("life %d: after entry %d readers see the state of %d, want %d", life, i+1, got, want)
			}
		}
	}
	if got := len(f.now.Members()); got != n+1 {
		t.Errorf("%d members after the replay", got)
	}
}
