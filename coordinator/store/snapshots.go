package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// summed is a snapshot store that keeps a checksum of what describes a snapshot
// as well, since Raft's own is of the state only, and that leaves nothing behind of
// a snapshot that fails.
type summed struct {
	*raft.FileSnapshotStore
	folder string // of the node

	mu   sync.Mutex
	last time.Time       // after the last name was made: names tell milliseconds
	open map[string]bool // folders of snapshots that are being written
}

// newSummed wraps the snapshots of a node's folder that nobody else writes to: what
// an earlier process left unfinished goes.
func newSummed(files *raft.FileSnapshotStore, folder string) (*summed, error) {
	s := &summed{FileSnapshotStore: files, folder: folder, open: make(map[string]bool)}
	return s, s.sweep()
}

// The names in a snapshot's folder.
const (
	snapshotsName = "snapshots"
	describesName = "meta.json"
	sumName       = "SUM"
	unfinished    = ".tmp" // ends the name of a snapshot's folder until it is whole
)

// sweep removes unfinished snapshots but those that are being written. It is called
// with mu held, or before anybody else has s.
func (s *summed) sweep() error {
	left, err := filepath.Glob(filepath.Join(s.folder, snapshotsName, "*"+unfinished))
	for _, path := range left {
		if !s.open[path] {
			err = errors.Join(err, os.RemoveAll(path))
		}
	}
	if err != nil {
		return fmt.Errorf("store: unfinished snapshots cannot be deleted: %w", err)
	}
	return nil
}

// Create implements raft.SnapshotStore. Two snapshots of one index have different
// names, also where the second follows in the same millisecond.
func (s *summed) Create(v raft.SnapshotVersion, index, term uint64, c raft.Configuration, at uint64, t raft.Transport) (raft.SnapshotSink, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.sweep(); err != nil {
		return nil, err
	}
	// Raft's names end in milliseconds: the next one begins after at most one.
	time.Sleep(time.Millisecond - time.Since(s.last))
	sink, err := s.FileSnapshotStore.Create(v, index, term, c, at, t)
	if err != nil {
		return nil, errors.Join(err, s.sweep()) // a full disk takes the folder and not its files
	}
	s.last = time.Now()
	file, ok := sink.(*raft.FileSnapshotSink)
	if !ok {
		panic(fmt.Sprintf("store: a snapshot is a %T", sink))
	}
	path := filepath.Join(s.folder, snapshotsName, file.ID())
	s.open[path+unfinished] = true
	return &summedSink{file, path, s}, nil
}

// ended forgets a snapshot that is written no more, and removes what is unfinished
// of it.
func (s *summed) ended(path string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, path+unfinished)
	return s.sweep()
}

// summedSink adds the checksum once the snapshot is in its place. A crash in
// between leaves a snapshot without, which is taken as it is.
type summedSink struct {
	*raft.FileSnapshotSink
	path  string // once it is closed
	store *summed
}

// Cancel implements raft.SnapshotSink.
func (s *summedSink) Cancel() error {
	return errors.Join(s.FileSnapshotSink.Cancel(), s.store.ended(s.path))
}

// Close implements raft.SnapshotSink.
func (s *summedSink) Close() error {
	if err := errors.Join(s.FileSnapshotSink.Close(), s.store.ended(s.path)); err != nil {
		return err
	}
	b, err := os.ReadFile(filepath.Join(s.path, describesName))
	if err == nil { // whole or not at all: half a checksum would condemn the snapshot
		err = replaceFile(filepath.Join(s.path, sumName), checksum(string(b))+"\n")
	}
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// checkSnapshots returns the index of the latest good snapshot, 0 without one, and
// an error for each that is corrupt.
func checkSnapshots(folder string, store *raft.FileSnapshotStore) (base uint64, bad map[string]error, err error) {
	entries, err := os.ReadDir(filepath.Join(folder, snapshotsName))
	if err != nil {
		return 0, nil, fmt.Errorf("store: %w", err)
	}
	bad = make(map[string]error)
	for _, e := range entries {
		if !e.IsDir() || strings.HasSuffix(e.Name(), unfinished) {
			continue
		}
		path := filepath.Join(folder, snapshotsName, e.Name())
		index, err := checkSnapshot(store, path)
		switch {
		case errors.Is(err, ErrCorrupt):
			bad[path] = err
		case err != nil: // nobody can tell
			return 0, nil, err
		}
		base = max(base, index)
	}
	return base, bad, nil
}

// checkSnapshot returns a snapshot's index, or, where it is corrupt, 0 and an error
// that wraps ErrCorrupt and names the file.
func checkSnapshot(store *raft.FileSnapshotStore, path string) (index uint64, err error) {
	describes := filepath.Join(path, describesName)
	b, err := os.ReadFile(describes)
	if err != nil {
		return 0, corrupted(describes, err)
	}
	sum, err := os.ReadFile(filepath.Join(path, sumName))
	if err == nil && strings.TrimSpace(string(sum)) != checksum(string(b)) {
		return 0, corrupted(describes, fmt.Errorf("the checksum is %s, but the file says %.8q", checksum(string(b)), sum))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, corrupted(describes, err)
	}
	meta, r, err := store.Open(filepath.Base(path)) // compares the state's checksum
	if err != nil {
		return 0, corrupted(filepath.Join(path, "state.bin"), err)
	}
	defer r.Close()
	if meta.ID != filepath.Base(path) || !strings.HasPrefix(meta.ID, fmt.Sprintf("%d-%d-", meta.Term, meta.Index)) {
		return 0, corrupted(describes, fmt.Errorf("the file describes another snapshot: %.80q, term %d, index %d", meta.ID, meta.Term, meta.Index))
	}
	return meta.Index, nil
}
