package store

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"runtime/debug"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	segments "github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"

	"github.com/coppice-ldl/coppice/internal/files"
)

// diskLog is Raft's log: raft-wal with what it leaves to others. Each entry has a
// checksum, since raft-wal checks only its last write. The index of the last entry
// that was acknowledged is kept beside it, since a log that was cut off by a
// flipped bit looks like one whose last write was torn. And after a write that
// failed it takes no more until it is opened again: raft-wal's memory and its
// files may differ then.
type diskLog struct {
	*wal.WAL
	acked  *ackedFile
	short  int64 // bytes of the last entries, which stay behind a snapshot
	files  *segmentFiles
	meta   string        // path of META
	place  *files.Places // the log's folder
	failed func(error)   // is told of the first write that fails
	broken atomic.Pointer[error]
	fault  func(op string) error // of tests
}

// entryOverhead is about what an entry takes in the log besides its data.
const entryOverhead = 64

// openDiskLog opens the log in a folder. Corruption wraps ErrCorrupt.
func openDiskLog(f *Folder, c *Config, log hclog.Logger, failed func(error)) (d *diskLog, err error) {
	acked, err := openAcked(f.path)
	if err != nil {
		return nil, err
	}
	place, err := files.Hold(f.log())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("store: cannot open the Raft log: %w", err), acked.close())
	}
	files := new(segmentFiles)
	w, err := openWAL(f, c.SegmentBytes, files, log)
	if err != nil {
		return nil, errors.Join(err, acked.close(), place.Close())
	}
	return &diskLog{WAL: w, acked: acked, files: files, meta: f.meta(), place: place, short: c.shortLog(), failed: failed, fault: c.fault}, nil
}

// openWAL opens raft-wal; whatever it says of its files, short of a full disk, and
// even where it panics, is corruption.
func openWAL(f *Folder, segment int, files types.VFS, log hclog.Logger) (w *wal.WAL, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			w, err = nil, corrupted(f.log(), fmt.Errorf("%v", r))
		}
	}()
	w, err = wal.Open(f.log(), wal.WithSegmentSize(segment), wal.WithLogger(log), wal.WithMetaStore(&meta{f.meta(), log}), wal.WithSegmentFiler(segments.NewFiler(f.log(), files)))
	switch {
	case err == nil, errors.Is(err, ErrCorrupt):
		return w, err
	case passes(err):
		return nil, fmt.Errorf("store: cannot open the Raft log in %s: %w", f.log(), err)
	}
	return nil, corrupted(f.log(), err)
}

// Close implements io.Closer.
func (l *diskLog) Close() error {
	return errors.Join(l.WAL.Close(), l.acked.close(), l.place.Close())
}

// inPlace returns nil if the log's folder, the list of its segments and the segment that is
// written are still there.
func (l *diskLog) inPlace() error {
	return cmp.Or(l.place.Check(), files.Check(l.meta, nil), l.files.check())
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
		return l.acked.raise(entries[len(entries)-1].Index)
	})
}

// DeleteRange implements raft.LogStore. Of the entries before a snapshot, which Raft
// names by their number, the last stay that have short bytes together with those after
// them.
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

// shortFrom returns from which entry on those up to last have at most short bytes: first or later.
func (l *diskLog) shortFrom(first, last uint64) uint64 {
	bytes, from := int64(0), last+1
	for from > first {
		var e raft.Log
		if err := l.WAL.GetLog(from-1, &e); err != nil {
			break // whoever needs that entry says so
		}
		if bytes += int64(len(e.Data)) + entryOverhead; bytes > l.short {
			break
		}
		from--
	}
	return from
}

// write runs something that changes the files, unless an earlier such has failed.
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

// fail has the log take no more, and returns why.
func (l *diskLog) fail(err error) error {
	if l.broken.CompareAndSwap(nil, &err) {
		l.failed(err)
	}
	return err
}

// GetLog implements raft.LogStore: an entry that has not its checksum is an error
// that wraps ErrCorrupt.
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

// sumOf returns an entry's checksum: CRC-32C of its index, term, type and data.
func sumOf(e *raft.Log) []byte {
	var head [17]byte
	binary.LittleEndian.PutUint64(head[0:], e.Index)
	binary.LittleEndian.PutUint64(head[8:], e.Term)
	head[16] = byte(e.Type)
	sum := crc32.Update(crc32.Checksum(head[:], castagnoli), castagnoli, e.Data)
	return binary.LittleEndian.AppendUint32(nil, sum)
}

// ackedFile remembers the index of the last entry that was acknowledged. It is
// written after each append and not synced: a process that is killed leaves it
// exact, a machine that loses power leaves it too low, which hides nothing but a
// bit that flipped in the very last write.
type ackedFile struct {
	file  *os.File
	index uint64
}

const ackedName = "ACKED"

func openAcked(folder string) (*ackedFile, error) {
	f, err := os.OpenFile(folder+"/"+ackedName, os.O_RDWR|os.O_CREATE, 0o600)
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

// raise moves the index on.
func (a *ackedFile) raise(index uint64) error { return a.write(index) }

// lower moves it back, to the disk: else a crash might leave it above the log.
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
