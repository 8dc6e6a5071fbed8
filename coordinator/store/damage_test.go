package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/internal/files"
)

// damage changes files in the folder of a node as a bad disk would, and returns a name that
// the error must contain.
type damage struct {
	name   string
	change func(t *testing.T, dir string) (names string)
	mends  bool // alone too: nothing is lost
}

// only returns the one file that a pattern matches.
func only(t *testing.T, dir, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(found) == 0 {
		t.Fatalf("no file %s in %s: %v", pattern, dir, err)
	}
	return found[len(found)-1]
}

// rewriteFile changes a file's bytes.
func rewriteFile(t *testing.T, path string, change func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, change(b), 0o644); err != nil {
		t.Fatal(err)
	}
}

// used returns how many bytes of a log file are in use. The bytes after them are zero.
func used(b []byte) int {
	n := len(b)
	for n > 0 && b[n-1] == 0 {
		n--
	}
	return n
}

// flip flips a bit at a fraction of the bytes in use.
func flip(share float64) func([]byte) []byte {
	return func(b []byte) []byte { b[int(share*float64(used(b)-1))] ^= 4; return b }
}

// flipIn flips a bit in the first occurrence of a text.
func flipIn(text string) func([]byte) []byte {
	return func(b []byte) []byte {
		at := bytes.Index(b, []byte(text))
		if at < 0 {
			panic("the log does not hold " + text)
		}
		b[at] ^= 4
		return b
	}
}

// damages has ways to damage the log that logged writes.
func damages() []damage {
	segment := func(change func([]byte) []byte) func(*testing.T, string) string {
		return func(t *testing.T, dir string) string {
			path := only(t, dir, "log/*.wal")
			rewriteFile(t, path, change)
			return path
		}
	}
	file := func(name string, change func([]byte) []byte) func(*testing.T, string) string {
		return func(t *testing.T, dir string) string {
			path := only(t, dir, name)
			rewriteFile(t, path, change)
			return path
		}
	}
	empty := func([]byte) []byte { return nil }
	return []damage{
		{"a bit of a frame's head in the middle", segment(func(b []byte) []byte {
			at := bytes.Index(b, []byte(memberID(20)))
			for at -= at % 8; binary.LittleEndian.Uint32(b[at:]) != 1; at -= 8 { // an entry's frame begins with its type
			}
			b[at] ^= 0x40
			return b
		}), false},
		{"a bit in the middle of the log", segment(flipIn(memberID(20))), false},
		{"a bit in the first entry", segment(flipIn(memberID(0))), false},
		{"a bit in the last write, which was acknowledged", segment(func(b []byte) []byte {
			b[used(b)-20] ^= 1
			return b
		}), false},
		{"the last write cut off", segment(func(b []byte) []byte { clear(b[used(b)-40:]); return b }), false},
		{"a log file cut to half", segment(func(b []byte) []byte { return b[:used(b)/2] }), false},
		{"an empty log file", segment(empty), false},
		{"a log file gone", func(t *testing.T, dir string) string {
			path := only(t, dir, "log/*.wal")
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			return filepath.Dir(path)
		}, false},
		{"a bit in the list of log files", file("log/META", flip(0.5)), true},
		{"half a list of log files", file("log/META", func(b []byte) []byte { return b[:len(b)/2] }), true},
		{"a bit in its copy", file("log/META.copy", flip(0.5)), true},
		{"a bit in both lists of log files", func(t *testing.T, dir string) string {
			rewriteFile(t, only(t, dir, "log/META.copy"), flip(0.3))
			path := only(t, dir, "log/META")
			rewriteFile(t, path, flip(0.5))
			return path
		}, false},
		{"a write that was torn and never acknowledged", segment(func(b []byte) []byte {
			n := used(b)
			copy(b[n/8*8+8:], []byte{1, 0, 0, 0, 200, 0, 0, 0, 'h', 'a', 'l', 'f'})
			return b
		}), true},
		{"a FORMAT file cut short", file(formatName, func(b []byte) []byte { return b[:7] }), true},
		{"an empty FORMAT file", file(formatName, empty), true},
		{"a bit in one copy of the vote", file(stableName, func(b []byte) []byte { b[17] ^= 1; return b }), true},
		{"a bit in the other", file(stableName, func(b []byte) []byte { b[stablePlace+30] ^= 1; return b }), true},
		{"ACKED cut short", file(ackedName, empty), true},
	}
}

// TestCorruptAlone: a coordinator alone does not start if acknowledged entries are corrupt,
// and names the file; other damage is repaired.
func TestCorruptAlone(t *testing.T) {
	t.Parallel()
	const n = 40
	for _, d := range damages() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, 1, nil)
			for i := range n {
				c.propose(memberEntry(i))
			}
			c.kill("a")
			names := d.change(t, filepath.Join(c.dir, "a"))
			l, err := net.Listen("tcp", c.peers[0].RaftAddr)
			if err != nil {
				t.Fatal(err)
			}
			config := c.config("a", l)
			var s *Store
			f, err := Claim(config)
			if err != nil {
				l.Close()
			} else {
				s, err = Open(config, f)
			}
			if d.mends {
				if err != nil {
					t.Fatal(err)
				}
				c.nodes["a"] = s
				c.propose(memberEntry(n))
				checkMembers(t, s.State(), n+1)
				return
			}
			if err == nil {
				c.nodes["a"] = s
				t.Fatal("it opened")
			}
			if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), names) {
				t.Errorf("%v, want ErrCorrupt with %s", err, names)
			}
		})
	}
}

// TestCorruptWithReplicas: with replicas the node comes back by itself, with all entries.
func TestCorruptWithReplicas(t *testing.T) {
	t.Parallel()
	const n = 40
	for _, d := range damages() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, 3, nil)
			var last uint64
			for i := range n {
				last = c.propose(memberEntry(i))
			}
			c.wait(last)
			id := c.followers(c.leader())[0].config.ID
			c.kill(id)
			d.change(t, filepath.Join(c.dir, id))
			s := c.start(id, nil)
			c.whole()
			c.wait(c.propose(memberEntry(n)))
			checkMembers(t, s.State(), n+1)
			testkit.Until(t, "office for it", func() bool {
				return c.leader().HandOver(testkit.Context(t), id) == nil && s.IsLeader()
			})
			c.propose(memberEntry(n + 1))
			checkMembers(t, s.State(), n+2)
		})
	}
}

// TestLostVotesAlone: a coordinator alone does not start without its votes.
func TestLostVotesAlone(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, nil)
	c.propose(memberEntry(0))
	c.kill("a")
	path := loseVotes(t, filepath.Join(c.dir, "a"))
	if _, err := Claim(c.config("a", nil)); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), path) {
		t.Errorf("%v", err)
	}
}

// loseVotes damages both copies of a node's votes.
func loseVotes(t *testing.T, dir string) (path string) {
	t.Helper()
	path = only(t, dir, stableName)
	rewriteFile(t, path, func(b []byte) []byte { b[20] ^= 1; b[stablePlace+20] ^= 1; return b })
	return path
}

// snapshotted returns a cluster of nodes that have a snapshot and a log after it.
func snapshotted(t *testing.T, nodes, n int) *cluster {
	c := newCluster(t, nodes, func(c *Config) { c.SnapshotLogBytes, c.SegmentBytes = 256<<10, 256<<10 })
	var last uint64
	for i := range n {
		last = c.propose(bulkEntry(i))
	}
	c.wait(last)
	for _, s := range c.nodes {
		testkit.Until(t, "snapshot", func() bool { return s.Stats().Snapshots > 1 })
	}
	return c
}

// TestCorruptSnapshots: a checksum reveals a corrupt snapshot, in the state or in its
// description.
func TestCorruptSnapshots(t *testing.T) {
	t.Parallel()
	const n = 300
	for _, test := range []struct {
		name, file string
		change     func([]byte) []byte
	}{
		{"a bit of the state", "snapshots/*/state.bin", flip(0.5)},
		{"the state cut short", "snapshots/*/state.bin", func(b []byte) []byte { return b[:len(b)/3] }},
		{"a bit of what describes it", "snapshots/*/meta.json", flip(0.4)},
		{"what describes it is empty", "snapshots/*/meta.json", func([]byte) []byte { return nil }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			for _, nodes := range []int{1, 3} {
				c := snapshotted(t, nodes, n)
				c.kill("a")
				dir := filepath.Join(c.dir, "a")
				all, _ := filepath.Glob(filepath.Join(dir, test.file))
				for _, path := range all {
					rewriteFile(t, path, test.change)
				}
				if nodes == 1 {
					l := testkit.Listen(t)
					if _, err := Open(c.config("a", l), c.claim(c.config("a", nil))); !errors.Is(err, ErrCorrupt) ||
						!strings.Contains(err.Error(), filepath.Base(test.file)) {
						t.Errorf("alone: %v", err)
					}
					continue
				}
				s := c.start("a", nil)
				c.whole()
				c.wait(c.propose(bulkEntry(n)))
				checkMembers(t, s.State(), n+1)
			}
		})
	}
}

// TestOlderSnapshotDoes: an older snapshot is enough if the log goes back to it; the
// corrupt one is set aside.
func TestOlderSnapshotDoes(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, nil)
	for i := range 20 {
		c.propose(memberEntry(i))
		if i == 9 || i == 15 {
			if err := c.nodes["a"].Snapshot(); err != nil {
				t.Fatal(err)
			}
		}
	}
	c.kill("a")
	rewriteFile(t, only(t, filepath.Join(c.dir, "a"), "snapshots/*/state.bin"), flip(0.5))
	s := c.start("a", nil)
	c.propose(memberEntry(20))
	checkMembers(t, s.State(), 21)
	if left, _ := filepath.Glob(filepath.Join(c.dir, "a", "snapshots", "*")); len(left) != 1 {
		t.Errorf("snapshots left: %v", left)
	}
	only(t, filepath.Join(c.dir, "a"), "corrupt/*")
}

// TestCheckIsQuick: reading the whole log at start takes little time.
func TestCheckIsQuick(t *testing.T) {
	c := newCluster(t, 1, nil)
	for i := range 2000 {
		c.nodes["a"].ProposeAsync(bulkEntry(i))
	}
	c.propose(memberEntry(0))
	n := c.nodes["a"].node.Load()
	began := time.Now()
	if err := n.log.check(c.nodes["a"].folder, 0, nil); err != nil {
		t.Fatal(err)
	}
	t.Logf("2000 entries of 4 KiB checked in %v", time.Since(began))
}

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

// TestFolderGone: a node stops if any part of its folder is taken away. An entry that could
// only be written into a deleted segment is not acknowledged.
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
			if _, _, err := s.Propose(testkit.Context(t), memberEntry(2)); !errors.Is(err, ErrClosed) ||
				!errors.Is(err, files.ErrGone) {
				t.Errorf("a stopped node answers %v", err)
			}
		})
	}
}

// TestFolderStays: segments of the log come and go, and the log is set aside, and the
// folder does not count as deleted.
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

// TestFolderOfTheLeaderGone: after its folder is deleted, a leader acknowledges only
// entries that the others have, and they go on.
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

// TestVoteCannotBeWritten: a node that cannot write its term or its vote stops and names
// the file. Raft does not panic, the node can be closed, and the others go on.
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
	if !errors.Is(err, syscall.EROFS) || !strings.Contains(err.Error(), filepath.Join(bad.config.Dir, stableName)) ||
		!strings.Contains(err.Error(), "start it again") {
		t.Errorf("it stops because of %v", err)
	}
	if _, _, err := bad.Propose(testkit.Context(t), memberEntry(1)); !errors.Is(err, ErrClosed) {
		t.Errorf("a stopped node answers %v", err)
	}
	c.close(bad.config.ID)
	c.wait(c.propose(memberEntry(1)))
}

// TestOwnVoteCannotBeWritten: a candidate that cannot write its own vote stops as well.
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

// TestEntryCannotBeRead: if an entry cannot be read, the log is opened again, and Raft does
// not panic.
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

// TestVoteInADeletedFile: a term or a vote in a deleted file does not count as written.
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
	for _, err := range []error{s.SetUint64([]byte(keyTerm), 8), s.SetUint64([]byte(keyVotedTerm), 8),
		s.Set([]byte(keyVoted), []byte("b"))} {
		if !errors.Is(err, files.ErrGone) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%v", err)
		}
	}
	if term, err := s.GetUint64([]byte(keyTerm)); err != nil || term != 7 {
		t.Errorf("term %d, %v", term, err)
	}
}
