package store

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// mustOpen opens the snapshots of a folder as a life of a node does.
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

// left counts what of a folder's snapshots is unfinished.
func left(t *testing.T, dir string) int {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, snapshotsName, "*"+unfinished))
	if err != nil {
		t.Fatal(err)
	}
	return len(found)
}

// Snapshots of one index that follow each other at once do not get in each other's
// way, one that is being written stays, and what a crash, an error or a full disk
// left goes.
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

// The name of a snapshot that is there already: it fails, and nothing is left.
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

// SUM is replaced, not written in its place: half of it, on a full disk or after a
// crash, would condemn a good snapshot.
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

// What cannot be read just now is not corrupt: it is not moved aside, least of all on
// all coordinators at once.
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
