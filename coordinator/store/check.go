package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// openLog opens the log once it and the snapshots have been read and found right. What
// is corrupt is moved aside if the rest does without it. Else the error wraps ErrCorrupt and
// names the file.
func (s *Store) openLog(snapshots *raft.FileSnapshotStore, log hclog.Logger) (*diskLog, error) {
	base, bad, err := checkSnapshots(s.folder.path, snapshots)
	if err != nil {
		return nil, err
	}
	d, err := openDiskLog(s.folder, &s.config, log, s.writeFailed)
	if err != nil {
		return nil, err
	}
	err = d.check(s.folder, base, bad)
	if err == nil {
		err = s.checkEmpty(d, base)
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	for path, why := range bad { // the log and the others do without
		s.config.Logger.Error("a snapshot is damaged; it is set aside, because another one replaces it", "error", why)
		if err := s.folder.setAside(path); err != nil {
			return nil, errors.Join(err, d.Close())
		}
	}
	return d, nil
}

// checkEmpty refuses a log that is empty though the node may have acknowledged something.
// Leaders are of term 2 or later. A cluster begins in term 1, so until then the first entry
// may be written again. A node that waits to be added is of term 0 until a leader reaches it;
// if it is killed before the first entry is on the disk, nobody can tell that from a deleted log.
// Within one process the log was looked at before.
func (s *Store) checkEmpty(d *diskLog, base uint64) error {
	last, err := d.LastIndex()
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	term, err := s.folder.stable.GetUint64([]byte(keyTerm))
	if err != nil {
		return err
	}
	i := s.folder.Identity()
	if max(last, base) > 0 || s.life.Load() != nil || term == 0 || term == 1 && len(i.Founders) > 0 {
		return nil
	}
	return corrupted(s.folder.log(), fmt.Errorf("the log is empty, although this node was in term %d: the log was deleted, or its first entries never arrived", term))
}

// check reads every entry and compares the log with the snapshot before it and
// with what was acknowledged.
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
			return corrupted(f.segment(i), fmt.Errorf("log entry %d: %w", i, err))
		}
	}
	if have := max(last, base); have < l.acked.index {
		return corrupted(f.segment(l.acked.index), fmt.Errorf("the log ends at entry %d, although entry %d was acknowledged", have, l.acked.index))
	}
	if last > 0 && last < base { // what a snapshot that was installed left
		return l.DeleteRange(first, last)
	}
	if first > base+1 {
		return noBase(f, first, base, bad)
	}
	return nil
}

// noBase is the error of a log whose snapshot is gone.
func noBase(f *Folder, first, base uint64, bad map[string]error) error {
	var why error
	for _, err := range bad {
		why = errors.Join(why, err)
	}
	if why == nil {
		why = corrupted(filepath.Join(f.path, snapshotsName), errors.New("a snapshot is missing"))
	}
	return fmt.Errorf("%w; the log begins at entry %d, but the last intact snapshot ends at entry %d", why, first, base)
}

// corrupted is an error that wraps ErrCorrupt and names the file; but where why says
// only that the file could not be read just now, it wraps why alone: what may be whole
// is not moved aside, and other coordinators may have the same trouble.
func corrupted(path string, why error) error {
	if passes(why) || withheld(why) {
		return fmt.Errorf("store: %s: %w", path, why)
	}
	return fmt.Errorf("store: %w: %s: %w", ErrCorrupt, path, why)
}

// segment returns the path of the log file that has an entry, or the folder's.
func (f *Folder) segment(index uint64) string {
	entries, _ := os.ReadDir(f.log()) // the folder's name will do
	var best string
	for _, e := range entries { // by name, which is by first index
		var first, id uint64
		if n, _ := fmt.Sscanf(e.Name(), "%020d-%016x.wal", &first, &id); n == 2 && first <= index {
			best = e.Name()
		}
	}
	return filepath.Join(f.log(), best)
}
