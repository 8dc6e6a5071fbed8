package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/hashicorp/go-hclog"
	walfs "github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/types"

	"github.com/coppice-ldl/coppice/internal/files"
)

// segmentFiles is the file system of raft-wal with a check after each sync: an entry in a
// segment that was deleted, or on a volume that was unmounted, is not acknowledged.
type segmentFiles struct {
	walfs.FS

	mu   sync.Mutex
	open map[string]os.FileInfo // the segments that raft-wal has opened and not deleted, by path; guarded by mu
}

// Create implements types.VFS.
func (s *segmentFiles) Create(dir, name string, size uint64) (types.WritableFile, error) {
	f, err := s.FS.Create(dir, name, size)
	return s.writable(filepath.Join(dir, name), f, err)
}

// OpenWriter implements types.VFS.
func (s *segmentFiles) OpenWriter(dir, name string) (types.WritableFile, error) {
	f, err := s.FS.OpenWriter(dir, name)
	return s.writable(filepath.Join(dir, name), f, err)
}

func (s *segmentFiles) writable(path string, f types.WritableFile, err error) (types.WritableFile, error) {
	if err != nil {
		return nil, err
	}
	if err := s.remember(path, f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &segmentWriter{f, s, path}, nil
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

// remember records which file raft-wal has opened.
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

// check returns nil if all open segments are still at their paths.
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

// segmentWriter is a segment that is written.
type segmentWriter struct {
	types.WritableFile
	all  *segmentFiles
	path string
}

// Sync implements types.WritableFile.
func (f *segmentWriter) Sync() error {
	if err := f.WritableFile.Sync(); err != nil {
		return err
	}
	f.all.mu.Lock()
	info := f.all.open[f.path]
	f.all.mu.Unlock()
	if info == nil { // raft-wal has deleted it
		return nil
	}
	return files.Check(f.path, info)
}

// segmentPath returns the path of the segment that has an entry, or the folder.
func segmentPath(folder string, index uint64) string {
	entries, _ := os.ReadDir(folder) // without it, the folder is named
	var best string
	for _, e := range entries { // by name, which is by first index
		var first, id uint64
		if n, _ := fmt.Sscanf(e.Name(), "%020d-%016x.wal", &first, &id); n == 2 && first <= index {
			best = e.Name()
		}
	}
	return filepath.Join(folder, best)
}

// The files in the log's folder that list its segments. Each has one line of JSON after its
// checksum. The copy replaces a damaged META, and is written before it.
const (
	metaName = "META"
	metaCopy = ".copy" // at the end of the name
)

// meta implements types.MetaStore by META and its copy, which are replaced as a whole.
type meta struct {
	path string
	log  hclog.Logger
}

// Load implements types.MetaStore. The copy is never older than META. It is newer only
// after a crash between the two writes; then nothing has been done yet that only the copy
// lists, as after a crash right after both writes.
func (m *meta) Load(string) (types.PersistentState, error) {
	text, state, err := readMeta(m.path)
	other, mended, copyErr := readMeta(m.path + metaCopy)
	missing := errors.Is(err, fs.ErrNotExist)
	switch {
	case err == nil && other == text:
		return state, nil
	case err == nil:
		return state, replaceFile(m.path+metaCopy, text)
	case missing && errors.Is(copyErr, fs.ErrNotExist):
		return types.PersistentState{}, nil
	case copyErr == nil && (missing || errors.Is(err, ErrCorrupt)):
		m.log.Error("the list of the log's files is missing or damaged, and is written again from its copy", "error", err)
		return mended, replaceFile(m.path, other)
	case missing:
		err = copyErr
	}
	return types.PersistentState{}, err
}

// readMeta reads META or its copy. all is its text.
func readMeta(path string) (all string, state types.PersistentState, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", state, fmt.Errorf("store: %w", err)
	}
	sum, text, _ := strings.Cut(string(b), " ")
	if want := checksum(text); sum != want {
		return "", state, corrupted(path, fmt.Errorf("the checksum is %s, but the file says %.8q", want, sum))
	}
	if err := json.Unmarshal([]byte(text), &state); err != nil {
		return "", state, corrupted(path, err)
	}
	return string(b), state, nil
}

// CommitState implements types.MetaStore.
func (m *meta) CommitState(state types.PersistentState) error {
	b, err := json.Marshal(state)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	text := string(b) + "\n"
	text = checksum(text) + " " + text
	if err := replaceFile(m.path+metaCopy, text); err != nil {
		return err
	}
	return replaceFile(m.path, text)
}

// GetStable implements types.MetaStore. Raft's stable store is VOTE.
func (m *meta) GetStable([]byte) ([]byte, error) { return nil, nil }

// SetStable implements types.MetaStore.
func (m *meta) SetStable(key, _ []byte) error {
	panic("store: " + strconv.Quote(string(key)) + " is kept in the log's folder")
}

// Close implements types.MetaStore.
func (m *meta) Close() error { return nil }
