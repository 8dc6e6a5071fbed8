package store

import (
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/protocol"
)

// onDisk returns how many bytes the files of a folder take, by their sizes or by their
// allocated blocks, whichever is more.
func onDisk(t *testing.T, dir string) int64 {
	t.Helper()
	var sizes, blocks int64
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if os.IsNotExist(err) { // a segment that was just deleted
			return nil
		}
		if err != nil {
			return err
		}
		sizes += info.Size()
		blocks += info.Sys().(*syscall.Stat_t).Blocks * 512
		return nil
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return max(sizes, blocks)
}

// TestIdleLogIsShort: the log of an idle node takes at most 64 MiB of the disk, after any
// load and with the defaults of Config, except for a shorter pause between snapshots. After
// a restart the node has all entries.
func TestIdleLogIsShort(t *testing.T) {
	t.Parallel()
	const bound = 64 << 20
	c := newCluster(t, 1, func(c *Config) { c.SegmentBytes, c.pause = 0, 10*time.Millisecond })
	s := c.leader()
	c.propose(memberEntry(0))
	commit := protocol.CommitEntry{Epoch: 1, Round: 1, Total: 512 << 10, Data: make([]byte, 512<<10)}
	entry := commit.Append(nil) // of a job that is not there: it is in the log only
	for range 200 {
		if index, _, err := s.ProposeAsync(entry).Result(); index == 0 {
			t.Fatal(err)
		}
	}
	testkit.Until(t, "a short log", func() bool { return onDisk(t, s.LogDir()) <= bound })
	c.kill("a")
	c.start("a", nil)
	c.wait(c.propose(memberEntry(1)))
	checkMembers(t, c.nodes["a"].State(), 2)
}

// TestShorten: a snapshot that only shortens the log waits for its time and for enough log,
// so that a busy node does not write one after the other.
func TestShorten(t *testing.T) {
	t.Parallel()
	config, err := Config{ID: "a", Dir: "a"}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	small, err := Config{ID: "a", Dir: "a", SnapshotLogBytes: 32 << 20}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		config *Config
		since  time.Duration
		logged int64
		want   bool
	}{
		{&config, time.Minute, 16 << 20, true},
		{&config, time.Minute - 1, 255 << 20, false},
		{&config, time.Hour, 16<<20 - 1, false},
		{&small, time.Minute, 2 << 20, true},
		{&small, time.Minute, 2<<20 - 1, false},
	} {
		if got := test.config.shorten(test.since, test.logged); got != test.want {
			t.Errorf("%v after the last snapshot, %d bytes of log: %v", test.since, test.logged, got)
		}
	}
}

// TestEntriesBehindASnapshot: Raft keeps some entries after a snapshot. The log keeps as
// many entries before them as fit into its bytes, and not one more. An end of the log that
// another leader replaces is deleted.
func TestEntriesBehindASnapshot(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "log")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		f := &Folder{path: dir}
		if err := os.MkdirAll(f.log(), 0o755); err != nil {
			t.Fatal(err)
		}
		short := rapid.Int64Range(0, 4000).Draw(t, "short")
		log, err := openDiskLog(f, &Config{SegmentBytes: 4 << 10, SnapshotLogBytes: 16 * short},
			newLog(slog.New(slog.DiscardHandler)), func(err error) {
				t.Error(err)
			})
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		sizes := rapid.SliceOfN(rapid.IntRange(0, 1000), 1, 40).Draw(t, "sizes")
		var entries []*raft.Log
		for i, n := range sizes {
			entries = append(entries, &raft.Log{Index: uint64(i + 1), Term: 1, Data: make([]byte, n)})
		}
		if err := log.StoreLogs(entries); err != nil {
			t.Fatal(err)
		}
		last := uint64(len(sizes))
		to := rapid.Uint64Range(1, last).Draw(t, "to")
		if err := log.DeleteRange(1, to); err != nil {
			t.Fatal(err)
		}
		want := to + 1
		if to < last {
			var bytes int64
			for i := last; i >= 1; i-- {
				if bytes += int64(sizes[i-1]) + entryOverhead; bytes > short {
					break
				}
				want = min(want, i)
			}
		} else {
			want = 0 // raft-wal's first index of nothing
		}
		if first, err := log.FirstIndex(); err != nil || first != want {
			t.Fatalf("the log begins at %d, want %d: %v", first, want, err)
		}
	})
}
