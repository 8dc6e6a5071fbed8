package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// openLog opens the log once it and the snapshots have been read and found right.
// What is corrupt is moved aside where the rest does without it; where it does not
// and there are replicas, the log begins anew, and recovering says that the node
// must not vote until it has caught up. Alone it is refused: the error wraps
// ErrCorrupt and names the file.
func (s *Store) openLog(snapshots *raft.FileSnapshotStore, log hclog.Logger) (d *diskLog, recovering bool, err error) {
	d, err = s.checkedLog(snapshots, log)
	if errors.Is(err, ErrCorrupt) && s.config.replicated() {
		s.config.Logger.Error("what this coordinator remembers is corrupt; it is fetched from the others", "error", err)
		if err := s.beginAnew(snapshots, err); err != nil {
			return nil, false, err
		}
		d, err = s.checkedLog(snapshots, log)
	}
	if err != nil {
		return nil, false, err
	}
	_, missing := os.Stat(s.folder.recover())
	return d, missing == nil, nil
}

// checkedLog opens the log and reads all of it.
func (s *Store) checkedLog(snapshots *raft.FileSnapshotStore, log hclog.Logger) (*diskLog, error) {
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
		s.config.Logger.Error("a snapshot is corrupt and not needed", "error", why)
		if err := s.folder.setAside(path); err != nil {
			return nil, errors.Join(err, d.Close())
		}
	}
	return d, nil
}

// checkEmpty refuses a log that is empty though the folder is not new: it was
// removed.
func (s *Store) checkEmpty(d *diskLog, base uint64) error {
	last, err := d.LastIndex()
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	term, err := s.folder.stable.GetUint64([]byte(keyTerm))
	if err != nil {
		return err
	}
	_, missing := os.Stat(s.folder.recover())
	waits := s.config.Join && term == 0 // to be added
	if max(last, base) > 0 || s.folder.begins || waits || missing == nil {
		return nil
	}
	return corrupted(s.folder.log(), fmt.Errorf("it is empty, and this node was in term %d", term))
}

// check reads every entry and compares the log with the snapshot before it and
// with what was acknowledged.
func (l *diskLog) check(f *folder, base uint64, bad map[string]error) error {
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
			return corrupted(f.segment(i), fmt.Errorf("entry %d: %w", i, err))
		}
	}
	if have := max(last, base); have < l.acked.index {
		return corrupted(f.segment(l.acked.index), fmt.Errorf("it ends at entry %d, and %d was acknowledged", have, l.acked.index))
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
func noBase(f *folder, first, base uint64, bad map[string]error) error {
	var why error
	for _, err := range bad {
		why = errors.Join(why, err)
	}
	if why == nil {
		why = corrupted(filepath.Join(f.path, snapshotsName), errors.New("a snapshot is missing"))
	}
	return fmt.Errorf("%w; the log begins at %d, the last good snapshot ends at %d", why, first, base)
}

// beginAnew moves the log, and the snapshots that are corrupt, aside, after it has
// written down that the node must catch up before it votes.
func (s *Store) beginAnew(snapshots *raft.FileSnapshotStore, why error) error {
	if err := replaceFile(s.folder.recover(), why.Error()+"\n"); err != nil {
		return err
	}
	_, bad, err := checkSnapshots(s.folder.path, snapshots)
	if err != nil {
		return err
	}
	for path := range bad {
		if err := s.folder.setAside(path); err != nil {
			return err
		}
	}
	if err := s.folder.setAside(s.folder.log()); err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(s.folder.path, ackedName)); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if err := os.Mkdir(s.folder.log(), 0o755); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return syncFolder(s.folder.path)
}

// goal is where a leader's log ended when it was asked, after this life of the node
// had begun.
type goal struct{ term, last uint64 }

// caughtUp ends the recovery once the node has everything that it ever may have
// acknowledged: see DESIGN.md, Catching up.
func (s *Store) caughtUp(n *node) {
	if n.goal == nil || n.goal.term != n.raft.CurrentTerm() {
		if n.goal = s.askLeader(); n.goal == nil {
			return
		}
	}
	last := n.raft.LastIndex()
	term, ok := n.termOf(last)
	if !ok || last < n.goal.last || term != n.goal.term || n.raft.CurrentTerm() != n.goal.term {
		return
	}
	if err := s.folder.drop(recoverName); err != nil {
		s.config.Logger.Warn("the end of the recovery could not be written down", "error", err)
		return
	}
	n.gate.lost.Store(false)
	s.folder.stable.abstains.Store(false)
	times := n.raft.ReloadableConfig()
	times.HeartbeatTimeout, times.ElectionTimeout = s.config.election(), s.config.election()
	if err := n.raft.ReloadConfig(times); err != nil {
		s.config.Logger.Warn("this coordinator does not stand for election until it is started again", "error", err)
	}
	s.config.Logger.Info("what was lost has been fetched from the others; this coordinator votes again", "entry", last)
}

// askLeader asks the leader where its log ends; nil where none says so.
func (s *Store) askLeader() *goal {
	id, _ := s.Leader()
	if id == "" || id == s.config.ID {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.config.patience())
	defer cancel()
	go func() { // the store may be closed meanwhile
		select {
		case <-s.down:
			cancel()
		case <-ctx.Done():
		}
	}()
	a, err := s.config.Ask(ctx, id)
	if err != nil || !a.Leads {
		s.config.Logger.Debug("the leader does not say where its log ends", "leader", id, "error", err)
		return nil
	}
	return &goal{a.Term, a.Last}
}

// termOf returns the term of an entry that the node has on its disk.
func (n *node) termOf(index uint64) (term uint64, ok bool) {
	var e raft.Log
	if index <= n.raft.LastIndex() && n.log.GetLog(index, &e) == nil {
		return e.Term, true
	}
	st := n.raft.Stats()
	if st["last_snapshot_index"] != strconv.FormatUint(index, 10) {
		return 0, false
	}
	term, err := strconv.ParseUint(st["last_snapshot_term"], 10, 64)
	return term, err == nil
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
func (f *folder) segment(index uint64) string {
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

// setAside moves a file or folder that is corrupt out of the way, into the folder
// "corrupt", where the last few of the kind are kept for whoever wants to know.
func (f *folder) setAside(path string) error {
	aside := filepath.Join(f.path, "corrupt")
	if err := os.MkdirAll(aside, 0o755); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	old, err := filepath.Glob(filepath.Join(aside, filepath.Base(path)+".*"))
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	slices.Sort(old)
	for len(old) >= 2 {
		if err := os.RemoveAll(old[0]); err != nil {
			return fmt.Errorf("store: %w", err)
		}
		old = old[1:]
	}
	to := filepath.Join(aside, fmt.Sprintf("%s.%020d", filepath.Base(path), time.Now().UnixNano()))
	if err := os.Rename(path, to); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("store: %w", err)
	}
	return syncFolder(f.path)
}
