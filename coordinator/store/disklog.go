package store

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	walfs "github.com/hashicorp/raft-wal/fs"
	segments "github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"

	"github.com/coppice-ldl/coppice/internal/files"
)

// diskLog is Raft's log: raft-wal, with three additions. Each entry has a checksum, since
// raft-wal checks only its last write. The index of the last acknowledged entry is kept in
// a file of its own, since a log that a flipped bit has cut off looks like a log with a
// torn last write. After a failed write the log accepts no other until it is opened again,
// since raft-wal's memory and its files may differ then.
type diskLog struct {
	*wal.WAL
	acked  *ackedFile
	short  int64 // bytes of the last entries, which stay after a snapshot
	files  *segmentFiles
	meta   string        // path of META
	place  *files.Places // the log's folder
	failed func(error)   // is told of the first write that fails
	broken atomic.Pointer[error]
	fault  func(op string) error // for tests; nil: none
}

// entryOverhead is about what an entry takes in the log in addition to its data.
const entryOverhead = 64

// openDiskLog opens the log in a folder. If it is corrupt, the error wraps ErrCorrupt.
func openDiskLog(f *Folder, c *Config, log hclog.Logger, failed func(error)) (d *diskLog, err error) {
	acked, err := openAcked(f.path)
	if err != nil {
		return nil, err
	}
	place, err := files.Hold(f.log())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("store: cannot open the Raft log: %w", err), acked.close())
	}
	d = &diskLog{
		acked: acked, files: new(segmentFiles), meta: filepath.Join(f.log(), metaName), place: place, short: c.shortLog(),
		failed: failed, fault: c.fault,
	}
	if d.WAL, err = openWAL(f.log(), d.meta, c.SegmentBytes, d.files, log); err != nil {
		return nil, errors.Join(err, acked.close(), place.Close())
	}
	return d, nil
}

// openWAL opens raft-wal. An error or a panic means that its files are corrupt, unless the
// disk is full.
func openWAL(folder, metaPath string, segmentBytes int, files types.VFS, log hclog.Logger) (w *wal.WAL, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			w, err = nil, corrupted(folder, fmt.Errorf("%v", r))
		}
	}()
	w, err = wal.Open(folder, wal.WithSegmentSize(segmentBytes), wal.WithLogger(log),
		wal.WithMetaStore(&meta{metaPath, log}), wal.WithSegmentFiler(segments.NewFiler(folder, files)))
	switch {
	case err == nil, errors.Is(err, ErrCorrupt):
		return w, err
	case passes(err):
		return nil, fmt.Errorf("store: cannot open the Raft log in %s: %w", folder, err)
	}
	return nil, corrupted(folder, err)
}

// Close implements io.Closer.
func (l *diskLog) Close() error {
	return errors.Join(l.WAL.Close(), l.acked.close(), l.place.Close())
}

// check reads every entry, and compares the log with the snapshot that ends at base and
// with the acknowledged index. bad has an error for each damaged snapshot.
func (l *diskLog) check(f *Folder, base uint64, bad map[string]error) error {
	first, err := l.FirstIndex()
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	last, err := l.LastIndex()
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	var e raft.Log
	for i := first; i > 0 && i <= last; i++ {
		if err := l.GetLog(i, &e); err != nil {
			return corrupted(segmentPath(f.log(), i), fmt.Errorf("log entry %d: %w", i, err))
		}
	}
	if have := max(last, base); have < l.acked.index {
		return corrupted(segmentPath(f.log(), l.acked.index),
			fmt.Errorf("the log ends at entry %d, although entry %d was acknowledged", have, l.acked.index))
	}
	if last > 0 && last < base { // older than a snapshot that was installed
		return l.DeleteRange(first, last)
	}
	if first <= base+1 {
		return nil
	}
	var why error
	for _, err := range bad {
		why = errors.Join(why, err)
	}
	if why == nil {
		why = corrupted(filepath.Join(f.path, snapshotsName), errors.New("a snapshot is missing"))
	}
	return fmt.Errorf("%w; the log begins at entry %d, but the last intact snapshot ends at entry %d", why, first, base)
}

// StoreLog implements raft.LogStore.
func (l *diskLog) StoreLog(e *raft.Log) error { return l.StoreLogs([]*raft.Log{e}) }

// StoreLogs implements raft.LogStore.
func (l *diskLog) StoreLogs(entries []*raft.Log) error {
	if len(entries) == 0 {
		return nil
	}
	return l.write("append", func() error {
		summed := make([]*raft.Log, len(entries))
		for i, e := range entries {
			c := *e
			c.Extensions = sumOf(e)
			summed[i] = &c
		}
		if err := l.WAL.StoreLogs(summed); err != nil {
			return err
		}
		return l.acked.write(entries[len(entries)-1].Index)
	})
}

// DeleteRange implements raft.LogStore. Raft names the entries before a snapshot by their
// number; the last ones stay, if they and all later entries together have at most short
// bytes.
func (l *diskLog) DeleteRange(from, to uint64) error {
	return l.write("delete", func() error {
		last, err := l.LastIndex()
		if err != nil {
			return err
		}
		if to >= last && from > 0 { // entries that another leader replaces
			if err := l.acked.lower(from - 1); err != nil {
				return err
			}
		}
		if to < last {
			to = min(to, l.shortFrom(from, last)-1)
		}
		if to < from {
			return nil
		}
		return l.WAL.DeleteRange(from, to)
	})
}

// shortFrom returns the lowest index from first on for which the entries up to last have at
// most short bytes.
func (l *diskLog) shortFrom(first, last uint64) uint64 {
	bytes, from := int64(0), last+1
	for from > first {
		var e raft.Log
		if err := l.WAL.GetLog(from-1, &e); err != nil {
			break // a reader of that entry reports it
		}
		if bytes += int64(len(e.Data)) + entryOverhead; bytes > l.short {
			break
		}
		from--
	}
	return from
}

// write calls f, which changes the files, unless an earlier change has failed.
func (l *diskLog) write(op string, f func() error) error {
	if b := l.broken.Load(); b != nil {
		return *b
	}
	var err error
	if l.fault != nil {
		err = l.fault(op)
	}
	if err == nil {
		err = f()
	}
	if err == nil || errors.Is(err, wal.ErrClosed) {
		return err
	}
	return l.fail(fmt.Errorf("store: the Raft log cannot be written: %w", err))
}

// fail ends all writes, and returns the error.
func (l *diskLog) fail(err error) error {
	if l.broken.CompareAndSwap(nil, &err) {
		l.failed(err)
	}
	return err
}

// GetLog implements raft.LogStore. If the checksum of the entry does not match, the error
// wraps ErrCorrupt.
func (l *diskLog) GetLog(index uint64, e *raft.Log) error {
	if l.fault != nil {
		if err := l.fault("read"); err != nil {
			return err
		}
	}
	if err := l.WAL.GetLog(index, e); err != nil {
		return err
	}
	if e.Index != index || string(sumOf(e)) != string(e.Extensions) {
		return fmt.Errorf("store: entry %d of the log: %w: its checksum does not match", index, ErrCorrupt)
	}
	e.Extensions = nil
	return nil
}

// sumOf returns the checksum of an entry: CRC-32C of its index, term, type and data.
func sumOf(e *raft.Log) []byte {
	var head [17]byte
	binary.LittleEndian.PutUint64(head[0:], e.Index)
	binary.LittleEndian.PutUint64(head[8:], e.Term)
	head[16] = byte(e.Type)
	sum := crc32.Update(crc32.Checksum(head[:], castagnoli), castagnoli, e.Data)
	return binary.LittleEndian.AppendUint32(nil, sum)
}

// raftLog is the log as Raft has it. Raft panics if an entry cannot be read. Here the log
// counts as failed, so it is opened again, and the goroutine of Raft that asked ends, as
// for raftStable.
type raftLog struct{ *diskLog }

// GetLog implements raft.LogStore.
func (l raftLog) GetLog(index uint64, e *raft.Log) error {
	err := l.diskLog.GetLog(index, e)
	if err == nil || errors.Is(err, raft.ErrLogNotFound) || errors.Is(err, wal.ErrClosed) {
		return err
	}
	_ = l.fail(fmt.Errorf("store: the Raft log cannot be read: %w", err)) // the node is told
	runtime.Goexit()
	return nil
}

// ackedFile has the index of the last acknowledged entry. It is written after each append
// and not synced. After the process is killed it is exact. After a power failure it may be
// too low, which only hides a flipped bit in the very last write. It is never too high.
type ackedFile struct {
	file  *os.File
	index uint64
}

func openAcked(folder string) (*ackedFile, error) {
	f, err := os.OpenFile(filepath.Join(folder, ackedName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	a := &ackedFile{file: f}
	var b [12]byte
	if n, _ := f.ReadAt(b[:], 0); n == len(b) && binary.LittleEndian.Uint32(b[8:]) == crc32.Checksum(b[:8], castagnoli) {
		a.index = binary.LittleEndian.Uint64(b[:])
	}
	return a, nil
}

func (a *ackedFile) write(index uint64) error {
	var b [12]byte
	binary.LittleEndian.PutUint64(b[:], index)
	binary.LittleEndian.PutUint32(b[8:], crc32.Checksum(b[:8], castagnoli))
	if _, err := a.file.WriteAt(b[:], 0); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	a.index = index
	return nil
}

// lower sets a lower index, and syncs it: after a crash it must not be above the end of the
// log.
func (a *ackedFile) lower(index uint64) error {
	if index >= a.index {
		return nil
	}
	if err := a.write(index); err != nil {
		return err
	}
	return a.file.Sync()
}

func (a *ackedFile) close() error { return a.file.Close() }

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
