package store

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/types"

	"github.com/coppice-ldl/coppice/internal/files"
)

// watchEvery is how often a node looks whether its folder is still there.
const watchEvery = 250 * time.Millisecond

// folderWatch stops a store if a file or folder that it has open is not there any longer. A
// node that writes to its log or its votes finds out before it acknowledges anything; this
// is for one that has nothing to write.
type folderWatch struct {
	store *Store
	held  *files.Places
}

// run watches until the store closes.
func (w *folderWatch) run() {
	s, f := w.store, w.store.folder
	var err error
	if w.held, err = files.Hold(f.path, filepath.Join(f.path, lockName), filepath.Join(f.path, stableName), filepath.Join(f.path, snapshotsName)); err != nil {
		s.stop(fmt.Errorf("store: the folder: %w", err))
		return
	}
	defer w.held.Close()
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		if err := w.check(); errors.Is(err, files.ErrGone) {
			s.stop(err)
			return
		}
		select {
		case <-tick.C:
		case <-s.quit:
			return
		case <-s.down:
			return
		}
	}
}

// check looks at the folder and the log. A restart may move the log aside, so nothing is
// looked at meanwhile.
func (w *folderWatch) check() error {
	if !w.store.restarting.TryLock() {
		return nil
	}
	defer w.store.restarting.Unlock()
	return cmp.Or(w.held.Check(), w.store.life.Load().log.inPlace())
}

// segmentFiles is the file system of raft-wal with a check after each sync: an entry in a
// segment that was deleted, or whose volume was unmounted, is not acknowledged.
type segmentFiles struct {
	fs.FS

	mu   sync.Mutex
	open map[string]os.FileInfo // by path
}

// Create implements types.VFS.
func (s *segmentFiles) Create(dir, name string, size uint64) (types.WritableFile, error) {
	f, err := s.FS.Create(dir, name, size)
	return s.written(filepath.Join(dir, name), f, err)
}

// OpenWriter implements types.VFS.
func (s *segmentFiles) OpenWriter(dir, name string) (types.WritableFile, error) {
	f, err := s.FS.OpenWriter(dir, name)
	return s.written(filepath.Join(dir, name), f, err)
}

// OpenReader implements types.VFS.
func (s *segmentFiles) OpenReader(dir, name string) (types.ReadableFile, error) {
	f, err := s.FS.OpenReader(dir, name)
	if err != nil {
		return nil, err
	}
	if err := s.remember(filepath.Join(dir, name), f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Delete implements types.VFS.
func (s *segmentFiles) Delete(dir, name string) error {
	s.mu.Lock()
	delete(s.open, filepath.Join(dir, name))
	s.mu.Unlock()
	return s.FS.Delete(dir, name)
}

func (s *segmentFiles) written(path string, f types.WritableFile, err error) (types.WritableFile, error) {
	if err != nil {
		return nil, err
	}
	if err := s.remember(path, f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &placedFile{f, s, path}, nil
}

// remember takes note of a segment that raft-wal has opened.
func (s *segmentFiles) remember(path string, file any) error {
	info, err := file.(interface{ Stat() (os.FileInfo, error) }).Stat()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = make(map[string]os.FileInfo)
	}
	s.open[path] = info
	return nil
}

// check returns nil if the segments of the log are still there.
func (s *segmentFiles) check() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for path, info := range s.open {
		if err := files.Check(path, info); err != nil {
			return err
		}
	}
	return nil
}

// placedFile is a segment that is written.
type placedFile struct {
	types.WritableFile
	of   *segmentFiles
	path string
}

// Sync implements types.WritableFile.
func (f *placedFile) Sync() error {
	if err := f.WritableFile.Sync(); err != nil {
		return err
	}
	f.of.mu.Lock()
	info := f.of.open[f.path]
	f.of.mu.Unlock()
	if info == nil { // raft-wal has deleted it
		return nil
	}
	return files.Check(f.path, info)
}
