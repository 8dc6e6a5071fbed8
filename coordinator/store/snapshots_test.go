package store

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/protocol"
)

// mustOpen opens the snapshots of a folder as a node does.
func mustOpen(t *testing.T, dir string) *snapshots {
	t.Helper()
	s, err := openSnapshots(dir, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// begin begins a snapshot of entry 7 in term 2.
func (s *snapshots) begin(t *testing.T) raft.SnapshotSink {
	t.Helper()
	_, nowhere := raft.NewInmemTransport("")
	sink, err := s.Create(raft.SnapshotVersionMax, 7, 2, raft.Configuration{}, 1, nowhere)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sink.Write([]byte("state")); err != nil {
		t.Fatal(err)
	}
	return sink
}

// left returns the number of unfinished snapshots in a folder.
func left(t *testing.T, dir string) int {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, snapshotsName, "*"+unfinished))
	if err != nil {
		t.Fatal(err)
	}
	return len(found)
}

// TestUnfinishedSnapshots: snapshots of one index that follow each other at once do not
// conflict. A snapshot that is being written stays; the rest of a crash, an error or a full
// disk is deleted.
func TestUnfinishedSnapshots(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := mustOpen(t, dir)
	for i := range 20 {
		if err := s.begin(t).Close(); err != nil {
			t.Fatalf("snapshot %d of the same index: %v", i, err)
		}
	}
	if n := left(t, dir); n > 0 {
		t.Errorf("%d unfinished snapshots are left", n)
	}
	installed := s.begin(t)
	if err := s.begin(t).Cancel(); err != nil {
		t.Fatal(err)
	}
	if n := left(t, dir); n != 1 {
		t.Errorf("%d snapshots are being written, want 1", n)
	}
	if err := os.Mkdir(filepath.Join(dir, snapshotsName, "2-7-1"+unfinished), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := s.begin(t).Close(); err != nil {
		t.Fatal(err)
	}
	if err := installed.Close(); err != nil || left(t, dir) > 0 {
		t.Errorf("%d unfinished snapshots are left: %v", left(t, dir), err)
	}
	s.begin(t) // and a crash
	if mustOpen(t, dir); left(t, dir) > 0 {
		t.Error("what a crash left is still there")
	}
	if base, bad, err := s.check(); base != 7 || len(bad) > 0 || err != nil {
		t.Errorf("the last good snapshot is of %d; bad are %v: %v", base, bad, err)
	}
}

// TestSnapshotInTheWay: a snapshot fails if its name exists, and nothing is left.
func TestSnapshotInTheWay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := mustOpen(t, dir)
	sink := s.begin(t)
	path := sink.(*snapshotSink).path
	if err := os.MkdirAll(filepath.Join(path, "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := sink.Close(); err == nil || left(t, dir) > 0 {
		t.Errorf("%d unfinished snapshots are left; error %v", left(t, dir), err)
	}
}

// TestSumIsWhole: SUM is replaced as a whole: half of it, on a full disk or after a crash,
// would condemn a good snapshot.
func TestSumIsWhole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := mustOpen(t, dir)
	sink := s.begin(t)
	path := sink.(*snapshotSink).path
	other := filepath.Join(dir, "other")
	if err := os.WriteFile(other, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(other, filepath.Join(path+unfinished, sumName)); err != nil {
		t.Fatal(err)
	}
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(other); string(b) != "x" {
		t.Errorf("SUM was written in its place: %q, %v", b, err)
	}
	if _, bad, err := s.check(); len(bad) > 0 || err != nil {
		t.Errorf("%v: %v", bad, err)
	}
}

// TestUnreadableIsNotCorrupt: a file that cannot be read at the moment is not corrupt, and
// is not set aside on all coordinators at once.
func TestUnreadableIsNotCorrupt(t *testing.T) {
	t.Parallel()
	for _, why := range []error{syscall.EMFILE, syscall.EACCES, syscall.ENOMEM, syscall.EIO, io.ErrUnexpectedEOF} {
		err := corrupted("x", &os.PathError{Op: "open", Path: "x", Err: why})
		want := errors.Is(why, syscall.EIO) || errors.Is(why, io.ErrUnexpectedEOF)
		if errors.Is(err, ErrCorrupt) != want || !errors.Is(err, why) {
			t.Errorf("%v is corrupt: want %v", err, want)
		}
	}
}

// bulkEntry is an entry of about 4 KiB.
func bulkEntry(i int) []byte {
	return protocol.EncodeEntry(protocol.EntryMember,
		&protocol.MemberEntry{ID: memberID(i), Version: strings.Repeat("v", 4<<10)})
}

// TestSnapshots: snapshots are written after some bytes of log. They restore a node that
// restarts, and a node whose next entry no other node has.
func TestSnapshots(t *testing.T) {
	t.Parallel()
	const n = 300 // beyond the trailing logs
	c := newCluster(t, 3, func(c *Config) { c.SnapshotLogBytes, c.SegmentBytes = 256<<10, 256<<10 })
	c.propose(bulkEntry(0))
	late := c.followers(c.leader())[0].config.ID
	c.kill(late)
	var last uint64
	for i := 1; i < n; i++ {
		last = c.propose(bulkEntry(i))
	}
	c.wait(last)
	for id, s := range c.nodes {
		testkit.Until(t, "snapshot", func() bool { return s.Stats().Snapshots > 0 })
		if logged := s.Stats().LogBytes; logged > n*4<<10-128<<10 {
			t.Errorf("node %s counts %d bytes since its last snapshot", id, logged)
		}
		first, err := s.node.Load().log.FirstIndex()
		if err != nil || first < 2 {
			t.Errorf("node %s keeps its log from %d: %v", id, first, err)
		}
	}
	s := c.start(late, nil)
	if _, err := s.Wait(testkit.Context(t), last); err != nil {
		t.Fatal(err)
	}
	checkMembers(t, s.State(), n)
	for id := range c.nodes {
		c.kill(id)
	}
	c.startAll()
	c.wait(last)
	for _, s := range c.nodes {
		checkMembers(t, s.State(), n)
	}
}
