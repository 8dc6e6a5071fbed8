package store

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
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
		acked: acked, files: new(segmentFiles), meta: filepath.Join(f.log(), metaName), place: place, short: c.shortLog(), failed: failed, fault: c.fault,
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
	w, err = wal.Open(folder, wal.WithSegmentSize(segmentBytes), wal.WithLogger(log), wal.WithMetaStore(&meta{metaPath, log}), wal.WithSegmentFiler(segments.NewFiler(folder, files)))
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

// inPlace returns nil if the log's folder, the list of its segments and the open segments
// still exist.
func (l *diskLog) inPlace() error {
	return cmp.Or(l.place.Check(), files.Check(l.meta, nil), l.files.check())
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
		return corrupted(segmentPath(f.log(), l.acked.index), fmt.Errorf("the log ends at entry %d, although entry %d was acknowledged", have, l.acked.index))
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
