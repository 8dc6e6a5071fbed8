package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/hashicorp/raft"
	"golang.org/x/sys/unix"

	"github.com/coppice-ldl/coppice/internal/files"
)

// passes reports whether an error of the disk goes away when somebody makes room.
func passes(err error) bool {
	for _, e := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG, syscall.EMFILE, syscall.ENFILE} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// withheld reports whether an error of the system says nothing about what is on the
// disk.
func withheld(err error) bool {
	for _, e := range []error{syscall.EACCES, syscall.EPERM, syscall.EROFS, syscall.ENOMEM, syscall.EAGAIN, syscall.EBUSY} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// writeFailed is told by the log that a write of it has failed. The node follows
// and votes on, but stands for no election until the log is open again. It stops if the
// log's files are not where they were.
func (s *Store) writeFailed(err error) {
	if n := s.life.Load(); n != nil {
		n.gate.notWritable.Store(true)
	}
	s.trouble.Store(&err)
	if errors.Is(err, files.ErrGone) {
		s.stop(err)
		return
	}
	s.config.Logger.Error("the log failed; it is opened again as soon as possible", "error", err)
}

// Trouble returns why this node cannot lead just now: its disk is full, or its log cannot be
// written. It is nil if all is well.
func (s *Store) Trouble() error {
	if e := s.trouble.Load(); e != nil {
		return *e
	}
	return nil
}

// Unsaved returns why the last snapshot could not be written, or nil: the log grows
// meanwhile.
func (s *Store) Unsaved() error {
	if e := s.unsaved.Load(); e != nil {
		return *e
	}
	return nil
}

// tend looks after what does not mend itself. It is called every DiskProbe.
func (s *Store) tend() {
	n := s.life.Load()
	if s.handoverHangs(time.Now()) {
		s.mend(errHangs)
		return
	}
	why := n.log.broken.Load()
	ended := false
	select {
	case <-n.ended: // a restart failed
		ended = true
	default:
	}
	if (why != nil || ended) && s.room() {
		reason := errors.New("the last start of Raft failed")
		if why != nil {
			reason = *why
		}
		s.mend(reason)
	}
}

// handoverHangs reports whether this leader was told for so long that it hands over that
// it never will have. What was noted in an earlier leadership says nothing of this one.
func (s *Store) handoverHangs(now time.Time) bool {
	since := s.handing.Load()
	switch {
	case since == nil:
		return false
	case !s.IsLeader():
		s.handing.Store(nil)
		return false
	case now.Sub(*since) <= 2*s.config.timeouts.HandOver:
		return false
	}
	s.handing.Store(nil)
	return true
}

// mend restarts Raft; what keeps it from starting is tried again, but for what no
// wait will cure.
func (s *Store) mend(why error) {
	err := s.restart(why)
	switch {
	case err == nil:
		s.trouble.Store(nil)
	case errors.Is(err, ErrClosed), errors.Is(err, errStuck):
	case errors.Is(err, ErrCorrupt), errors.Is(err, ErrFolder):
		s.stop(err)
	default:
		s.trouble.Store(&err)
		s.config.Logger.Warn("Raft could not be restarted yet", "error", err)
	}
}

// room reports whether the disk takes a file of the log and a little more.
func (s *Store) room() bool {
	if s.config.fault != nil && s.config.fault("room") != nil {
		return false
	}
	var st unix.Statfs_t
	if err := unix.Statfs(s.folder.path, &st); err != nil {
		return false
	}
	need := uint64(s.config.SegmentBytes) + 1<<20
	if st.Blocks > 0 && st.Bavail*uint64(st.Bsize) < need {
		return false
	}
	probe := filepath.Join(s.folder.path, "PROBE.tmp")
	defer os.Remove(probe)
	return files.WriteSynced(probe, make([]byte, 64<<10), 0o600) == nil
}

// errHangs says that a handover of the leadership has not ended: Raft takes no
// entries meanwhile, and may not for ever (hashicorp/raft#696).
var errHangs = errors.New("store: the transfer of the leadership did not end in time")

// HandOver makes another voter the leader, a certain one where to is not empty,
// within Timeouts.HandOver. Should Raft hang in that it is started anew in this
// process, which ends the leadership here as well: the others elect one.
func (s *Store) HandOver(ctx context.Context, to string) error {
	if !s.IsLeader() {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, s.config.timeouts.HandOver)
	defer cancel()
	var err error
	if to == "" {
		err = s.TransferLeadership(limited)
	} else {
		err = s.TransferTo(limited, to)
	}
	if err == nil || ctx.Err() != nil {
		return err
	}
	if s.hangs(ctx) {
		return s.restart(errHangs)
	}
	if !s.IsLeader() {
		return nil
	}
	return err
}

// hangs reports whether Raft says for a whole HandOver that a transfer is on its
// way, after it should have ended.
func (s *Store) hangs(ctx context.Context) bool {
	limited, cancel := context.WithTimeout(ctx, s.config.timeouts.HandOver)
	defer cancel()
	tick := time.NewTicker(s.config.timeouts.RaftCommit)
	defer tick.Stop()
	for {
		err := s.await(limited, func() error { return s.raft().Barrier(s.config.patience()).Error() })
		if limited.Err() != nil {
			return ctx.Err() == nil && s.IsLeader()
		}
		if !errors.Is(err, raft.ErrLeadershipTransferInProgress) {
			return false
		}
		select {
		case <-tick.C:
		case <-limited.Done():
			return ctx.Err() == nil && s.IsLeader()
		}
	}
}

// noteHandover remembers since when Raft refuses entries because of a handover.
func (s *Store) noteHandover(err error) {
	if errors.Is(err, raft.ErrLeadershipTransferInProgress) {
		now := time.Now()
		s.handing.CompareAndSwap(nil, &now)
	} else if s.handing.Load() != nil {
		s.handing.Store(nil)
	}
}

// Restarts returns how often Raft was started anew in this process.
func (s *Store) Restarts() uint64 { return s.restarts.Load() }
