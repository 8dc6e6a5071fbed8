package store

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/harness/allocs"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/protocol"
)

// stuckSink is a snapshot on a disk that hangs until release is closed.
type stuckSink struct {
	bytes.Buffer
	began, release chan struct{}
}

func (s *stuckSink) Write(b []byte) (int, error) {
	select {
	case <-s.began:
	default:
		close(s.began)
	}
	<-s.release
	return s.Buffer.Write(b)
}
func (s *stuckSink) Close() error  { return nil }
func (s *stuckSink) Cancel() error { return nil }
func (s *stuckSink) ID() string    { return "stuck" }

// TestSnapshotTakesAPointer: a snapshot of a large state costs a pointer, however long its
// write takes. Entries are applied meanwhile, and are not in it.
func TestSnapshotTakesAPointer(t *testing.T) {
	f := newFSM(1<<40, func(err error) { t.Error(err) })
	index := uint64(0)
	apply := func(entry []byte) {
		index++
		if r := f.Apply(&raft.Log{Index: index, Data: entry}).(state.Result); r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	const n = 500
	for i := range n { // 4 MiB
		apply(protocol.EncodeEntry(protocol.EntryMember, &protocol.MemberEntry{ID: memberID(i),
			Version: strings.Repeat("v", 8<<10)}))
	}
	var snapshot raft.FSMSnapshot
	var err error
	allocs.AtMost(t, 64<<10, "taking the pointer", func() { snapshot, err = f.Snapshot() })
	if err != nil {
		t.Fatal(err)
	}
	sink := &stuckSink{began: make(chan struct{}), release: make(chan struct{})}
	written := make(chan error, 1)
	go func() { written <- snapshot.Persist(sink) }()
	<-sink.began
	for i := n; i < n+10; i++ {
		apply(memberEntry(i))
	}
	if got := len(f.view.State().Members()); got != n+10 {
		t.Errorf("%d members while the snapshot is written, want %d", got, n+10)
	}
	close(sink.release)
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	s, err := state.Decode(&sink.Buffer)
	if err != nil {
		t.Fatal(err)
	}
	if s.Index() != n || len(s.Members()) != n {
		t.Errorf("the snapshot is of entry %d with %d members, want %d", s.Index(), len(s.Members()), n)
	}
}

// TestLeaderDiesWhileASnapshotIsInstalled: the leader dies while it sends a snapshot to a
// follower that needs one: the next leader sends its own.
func TestLeaderDiesWhileASnapshotIsInstalled(t *testing.T) {
	t.Parallel()
	const n = 300
	c, f := newFaulty(t, 3, func(c *Config) { c.SnapshotLogBytes, c.SegmentBytes = 256<<10, 256<<10 })
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
	leader := c.leader()
	id := leader.config.ID
	held := make(chan struct{})
	f.mu.Lock()
	f.hold[id+" install"] = held
	f.mu.Unlock()
	s := c.start(late, nil)
	testkit.Until(t, "snapshot on its way", func() bool { return f.count(id, "install") > 0 || c.leader() != leader })
	f.mu.Lock()
	f.fail[id+" install"] = io.ErrUnexpectedEOF // the connection ends in the middle
	f.mu.Unlock()
	close(held)
	c.kill(id)
	last = c.propose(bulkEntry(n))
	if _, err := s.Wait(testkit.Context(t), last); err != nil {
		t.Fatal(err)
	}
	checkMembers(t, s.State(), n+1)
	f.mu.Lock()
	delete(f.hold, id+" install")
	delete(f.fail, id+" install")
	f.mu.Unlock()
	c.start(id, nil)
	c.wait(c.propose(bulkEntry(n + 1)))
}

// TestEdits: each entry counts as an edit, also if it is refused, but for the entries that say how far jobs are.
func TestEdits(t *testing.T) {
	f := newFSM(1<<40, func(err error) { t.Error(err) })
	for i, c := range []struct {
		kind protocol.EntryKind
		want uint64
	}{
		{protocol.EntryMember, 1}, {protocol.EntryCommit, 1}, {protocol.EntryResult, 1}, {protocol.EntryWithhold, 1},
		{protocol.EntryPause, 2}, {protocol.EntryFinish, 3}, {protocol.EntrySubmit, 4},
	} {
		f.Apply(&raft.Log{Index: uint64(i + 1), Data: protocol.EncodeEntry(c.kind, &protocol.MemberEntry{ID: "a"})})
		if n := f.view.Edits(); n != c.want {
			t.Errorf("after an entry of kind %d, %d edits, want %d", c.kind, n, c.want)
		}
	}
	f.Apply(&raft.Log{Index: 9})
	if n := f.view.Edits(); n != 5 {
		t.Errorf("after an entry without a kind, %d edits", n)
	}
}
