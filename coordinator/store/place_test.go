package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/internal/files"
)

// segmentsOf lists the segments of a node's log.
func segmentsOf(t *testing.T, dir string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, logName, "*.wal"))
	if err != nil || len(list) == 0 {
		t.Fatalf("segments %v, %v", list, err)
	}
	return list
}

// stops waits until a store has stopped and returns why.
func stops(t *testing.T, s *Store) error {
	t.Helper()
	testkit.Until(t, "the end of a node", func() bool { return s.Err() != nil })
	return s.Err()
}

// Whatever of its folder is taken away, a node stops. An entry that could only be written
// into a deleted segment is not acknowledged.
func TestFolderGone(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		take  func(dir string) error
		loses bool // the segment that is written
	}{
		"all deleted": {os.RemoveAll, true},
		"moved":       {func(dir string) error { return os.Rename(dir, dir+".old") }, true},
		"another folder in its place": {func(dir string) error {
			return errors.Join(os.RemoveAll(dir), os.MkdirAll(filepath.Join(dir, logName), 0o700))
		}, true},
		"the log deleted": {func(dir string) error { return os.RemoveAll(filepath.Join(dir, logName)) }, true},
		"segments deleted": {func(dir string) error {
			list, err := filepath.Glob(filepath.Join(dir, logName, "*.wal"))
			for _, path := range list {
				err = errors.Join(err, os.Remove(path))
			}
			return err
		}, true},
		"META deleted":      {func(dir string) error { return os.Remove(filepath.Join(dir, logName, metaName)) }, false},
		"VOTE deleted":      {func(dir string) error { return os.Remove(filepath.Join(dir, stableName)) }, false},
		"LOCK deleted":      {func(dir string) error { return os.Remove(filepath.Join(dir, lockName)) }, false},
		"snapshots deleted": {func(dir string) error { return os.RemoveAll(filepath.Join(dir, snapshotsName)) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, 1, nil)
			c.propose(memberEntry(0))
			s := c.nodes["a"]
			if err := test.take(s.config.Dir); err != nil {
				t.Fatal(err)
			}
			if test.loses {
				if _, _, err := s.Propose(testkit.Context(t), memberEntry(1)); err == nil {
					t.Error("an entry in a deleted file was acknowledged")
				}
			}
			if err := stops(t, s); !errors.Is(err, files.ErrGone) || !strings.Contains(err.Error(), s.config.Dir) {
				t.Errorf("it stops because of %v", err)
			}
			if _, _, err := s.Propose(testkit.Context(t), memberEntry(2)); !errors.Is(err, ErrClosed) || !errors.Is(err, files.ErrGone) {
				t.Errorf("a stopped node answers %v", err)
			}
		})
	}
}

// The segments of the log come and go, and the log is moved aside, without the folder
// counting as deleted.
func TestFolderStays(t *testing.T) {
	t.Parallel()
	c, f := newFaulty(t, 3, func(c *Config) { c.SegmentBytes, c.SnapshotLogBytes = 64<<10, 1<<20 })
	n := 0
	fill := func() {
		for range 40 {
			n++
			c.propose(bulkEntry(n))
		}
	}
	fill()
	first := segmentsOf(t, c.nodes["a"].config.Dir)[0]
	for _, s := range c.nodes {
		if err := s.Snapshot(); err != nil {
			t.Fatal(err)
		}
	}
	for range 10 {
		fill()
	}
	for _, s := range c.nodes {
		if err := s.Snapshot(); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Until(t, "the end of the first segment", func() bool { _, err := os.Stat(first); return err != nil })
	a := c.nodes["a"]
	f.set("a", "append", syscall.EIO)
	fill()
	f.set("a", "append", nil)
	testkit.Until(t, "the restart of a", func() bool { return a.Restarts() > 0 && a.Trouble() == nil })
	c.wait(c.propose(memberEntry(1)))
	for id, s := range c.nodes {
		if err := s.Err(); err != nil {
			t.Errorf("%s: %v", id, err)
		}
		if err := s.inPlace(new(files.Places)); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// A leader whose folder is deleted acknowledges nothing that the others do not have, and
// they go on.
func TestFolderOfTheLeaderGone(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	n := 0
	for ; n < 5; n++ {
		c.propose(memberEntry(n))
	}
	s := c.leader()
	if err := os.RemoveAll(s.config.Dir); err != nil {
		t.Fatal(err)
	}
	for { // what is acknowledged now is looked for below
		if _, _, err := s.Propose(testkit.Context(t), memberEntry(n)); err != nil {
			break
		}
		n++
	}
	if err := stops(t, s); !errors.Is(err, files.ErrGone) {
		t.Errorf("it stops because of %v", err)
	}
	c.close(s.config.ID)
	last := c.propose(memberEntry(n))
	c.wait(last)
	for _, s := range c.nodes {
		checkMembers(t, s.State(), n+1)
	}
}

// A node that cannot write its term or its vote stops and names the file. Raft does not
// panic, the node can be closed, and the others go on.
func TestVoteCannotBeWritten(t *testing.T) {
	t.Parallel()
	c, f := newFaulty(t, 3, nil)
	c.propose(memberEntry(0))
	s := c.leader()
	bad := c.followers(s)[0]
	f.set(bad.config.ID, "vote", syscall.EROFS)
	if err := s.HandOver(testkit.Context(t), c.followers(s)[1].config.ID); err != nil {
		t.Log(err)
	}
	err := stops(t, bad)
	if !errors.Is(err, syscall.EROFS) || !strings.Contains(err.Error(), filepath.Join(bad.config.Dir, stableName)) || !strings.Contains(err.Error(), "start it again") {
		t.Errorf("it stops because of %v", err)
	}
	if _, _, err := bad.Propose(testkit.Context(t), memberEntry(1)); !errors.Is(err, ErrClosed) {
		t.Errorf("a stopped node answers %v", err)
	}
	c.close(bad.config.ID)
	c.wait(c.propose(memberEntry(1)))
}

// The same of one that wants to be elected, whose vote is for itself.
func TestOwnVoteCannotBeWritten(t *testing.T) {
	t.Parallel()
	c, f := newFaulty(t, 3, nil)
	c.propose(memberEntry(0))
	s := c.leader()
	bad := c.followers(s)[0]
	f.set(bad.config.ID, "vote", syscall.EIO)
	if err := s.TransferTo(testkit.Context(t), bad.config.ID); err == nil {
		t.Error("it was elected without its vote on the disk")
	}
	if err := stops(t, bad); !errors.Is(err, syscall.EIO) {
		t.Errorf("it stops because of %v", err)
	}
	c.close(bad.config.ID)
	c.wait(c.propose(memberEntry(1)))
}

// An entry that cannot be read has the log opened again: Raft does not panic.
func TestEntryCannotBeRead(t *testing.T) {
	t.Parallel()
	c, f := newFaulty(t, 3, nil)
	c.propose(memberEntry(0))
	bad := c.followers(c.leader())[0]
	f.set(bad.config.ID, "read", syscall.EIO)
	c.propose(memberEntry(1))
	testkit.Until(t, "trouble", func() bool { return errors.Is(bad.Trouble(), syscall.EIO) })
	f.set(bad.config.ID, "read", nil)
	c.wait(c.propose(memberEntry(2)))
	testkit.Until(t, "end of trouble", func() bool { return bad.Trouble() == nil })
	checkMembers(t, bad.State(), 3)
	if bad.Restarts() == 0 || errors.Is(bad.Err(), state.ErrUnknownEntry) {
		t.Errorf("%d restarts, %v", bad.Restarts(), bad.Err())
	}
}

// A term or a vote in a deleted file does not count as written.
func TestVoteInADeletedFile(t *testing.T) {
	dir := t.TempDir()
	s, err := openStable(dir, "a", true)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	if err := s.SetUint64([]byte(keyTerm), 7); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir, dir+".old"); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{s.SetUint64([]byte(keyTerm), 8), s.SetUint64([]byte(keyVotedTerm), 8), s.Set([]byte(keyVoted), []byte("b"))} {
		if !errors.Is(err, files.ErrGone) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%v", err)
		}
	}
	if term, err := s.GetUint64([]byte(keyTerm)); err != nil || term != 7 {
		t.Errorf("term %d, %v", term, err)
	}
}
