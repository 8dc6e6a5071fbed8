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

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// snapshots is a snapshot store that also has a checksum of the description of each
// snapshot, since Raft's checksum is of the state only. A snapshot that fails leaves
// nothing behind.
type snapshots struct {
	*raft.FileSnapshotStore
	folder string // of the node

	mu   sync.Mutex      // guards what follows, and the unfinished snapshots in the folder
	last time.Time       // when the last name was made
	open map[string]bool // snapshots that are being written, by their final path
}

// The names in the folder of a snapshot.
const (
	describesName = "meta.json"
	sumName       = "SUM"
	unfinished    = ".tmp" // ends the name of the folder until the snapshot is complete
)

// openSnapshots opens the snapshots of a node, and deletes the unfinished ones of an
// earlier process.
func openSnapshots(folder string, log hclog.Logger) (*snapshots, error) {
	store, err := raft.NewFileSnapshotStoreWithLogger(folder, retainSnapshots, log)
	if err != nil {
		return nil, fmt.Errorf("store: cannot read the snapshots in %s: %w", folder, err)
	}
	s := &snapshots{FileSnapshotStore: store, folder: folder, open: make(map[string]bool)}
	if err := s.sweep(""); err != nil {
		return nil, err
	}
	return s, syncFolder(folder) // the snapshots' folder may be new
}

// Create implements raft.SnapshotStore. Two snapshots of one index have different names,
// even if the second follows in the same millisecond.
func (s *snapshots) Create(v raft.SnapshotVersion, index, term uint64, c raft.Configuration, at uint64, t raft.Transport) (raft.SnapshotSink, error) {
	if err := s.sweep(""); err != nil {
		return nil, err
	}
	s.mu.Lock()
	time.Sleep(time.Millisecond - time.Since(s.last)) // Raft's names end in milliseconds
	sink, err := s.FileSnapshotStore.Create(v, index, term, c, at, t)
	var made *snapshotSink
	if err == nil {
		file := sink.(*raft.FileSnapshotSink)
		made = &snapshotSink{file, filepath.Join(s.folder, snapshotsName, file.ID()), s}
		s.last, s.open[made.path] = time.Now(), true
	}
	s.mu.Unlock()
	if err != nil {
		return nil, errors.Join(err, s.sweep("")) // a full disk may take the folder and not its files
	}
	return made, nil
}

// sweep deletes unfinished snapshots that are not being written. Of these it first forgets
// the one with the path ended.
func (s *snapshots) sweep(ended string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, ended)
	left, err := filepath.Glob(filepath.Join(s.folder, snapshotsName, "*"+unfinished))
	for _, path := range left {
		if !s.open[strings.TrimSuffix(path, unfinished)] {
			err = errors.Join(err, os.RemoveAll(path))
		}
	}
	if err != nil {
		return fmt.Errorf("store: unfinished snapshots cannot be deleted: %w", err)
	}
	return nil
}

// snapshotSink adds the checksum after the snapshot is in its place. A crash in between
// leaves a snapshot without one, which is accepted.
type snapshotSink struct {
	*raft.FileSnapshotSink
	path  string // after Close
	store *snapshots
}

// Cancel implements raft.SnapshotSink.
func (s *snapshotSink) Cancel() error {
	return errors.Join(s.FileSnapshotSink.Cancel(), s.store.sweep(s.path))
}

// Close implements raft.SnapshotSink.
func (s *snapshotSink) Close() error {
	if err := errors.Join(s.FileSnapshotSink.Close(), s.store.sweep(s.path)); err != nil {
		return err
	}
	b, err := os.ReadFile(filepath.Join(s.path, describesName))
	if err == nil { // the file is replaced as a whole: half a checksum would condemn the snapshot
		err = replaceFile(filepath.Join(s.path, sumName), checksum(string(b))+"\n")
	}
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// check returns the index of the latest intact snapshot, or 0, and an error by path for
// each damaged one.
func (s *snapshots) check() (base uint64, bad map[string]error, err error) {
	entries, err := os.ReadDir(filepath.Join(s.folder, snapshotsName))
	if err != nil {
		return 0, nil, fmt.Errorf("store: %w", err)
	}
	bad = make(map[string]error)
	for _, e := range entries {
		if !e.IsDir() || strings.HasSuffix(e.Name(), unfinished) {
			continue
		}
		path := filepath.Join(s.folder, snapshotsName, e.Name())
		index, err := s.checkOne(path)
		switch {
		case errors.Is(err, ErrCorrupt):
			bad[path] = err
		case err != nil: // it may be intact
			return 0, nil, err
		}
		base = max(base, index)
	}
	return base, bad, nil
}

// checkOne returns the index of a snapshot. If it is damaged, the error wraps ErrCorrupt
// and names the file.
func (s *snapshots) checkOne(path string) (index uint64, err error) {
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
	meta, r, err := s.Open(filepath.Base(path)) // it compares the checksum of the state
	if err != nil {
		return 0, corrupted(filepath.Join(path, "state.bin"), err)
	}
	defer r.Close()
	if meta.ID != filepath.Base(path) || !strings.HasPrefix(meta.ID, fmt.Sprintf("%d-%d-", meta.Term, meta.Index)) {
		return 0, corrupted(describes, fmt.Errorf("the file describes another snapshot: %.80q, term %d, index %d", meta.ID, meta.Term, meta.Index))
	}
	return meta.Index, nil
}
