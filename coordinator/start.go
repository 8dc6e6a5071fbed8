package coordinator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/protocol"
)

// startup finds out how this coordinator begins: with the log in its folder, as a
// founder of a new cluster, or as a member that the leader of a cluster adds. That may
// take until other coordinators are there; HTTP answers answer and waits meanwhile.
// Nothing but an id is written to the folder before all ports are open, so a first
// start that fails founds no cluster.
type startup struct {
	cfg       *settings
	book      *addressBook
	peers     *peers
	committed func(time.Duration) // called with the duration of each commit

	namedCluster  string        // the cluster that CLUSTER names; "" if the folder is new or CLUSTER is damaged
	damaged       error         // why neither CLUSTER nor its copy can be read, or nil
	joinedCluster string        // the cluster that Config.Join found, or ""
	folder        *store.Folder // of Raft; nil before it is claimed, and once the store has taken it

	claimed atomic.Pointer[store.Folder] // of Raft, from when it is claimed until the log is open
	full    atomic.Pointer[error]        // why the disk has no room for the start, or nil
}

// newStartup reads what the folder says of the cluster, and asks a cluster that this
// coordinator joins. It writes nothing.
func newStartup(ctx context.Context, cfg *settings, committed func(time.Duration)) (*startup, error) {
	s := &startup{cfg: cfg, committed: committed}
	kept := cfg.kept
	s.namedCluster, s.damaged = clusterID(cfg.Dir, cfg.Log)
	if s.damaged != nil && !errors.Is(s.damaged, store.ErrCorrupt) {
		return nil, s.damaged
	}
	if len(cfg.Join) > 0 && s.namedCluster == "" && s.damaged == nil {
		c, err := joinCluster(ctx, cfg)
		if err != nil {
			return nil, err
		}
		s.joinedCluster, kept.External, kept.Members = c.Cluster, c.External, c.members
	}
	if cfg.NATS == "" {
		cfg.NATS = kept.External
	}
	s.book = newAddressBook(&cfg.Config, kept)
	s.peers = newPeers(cfg, s.book)
	return s, nil
}

// answer is what this coordinator says of itself before its log is open.
func (s *startup) answer() protocol.Self {
	a := store.Answer{Phase: store.PhaseOpening}
	if f := s.claimed.Load(); f != nil {
		a = f.Answer()
	}
	self := s.peers.answer(a)
	self.Problem = s.waits()
	return self
}

// waits says what the start waits for.
func (s *startup) waits() string {
	if full := s.full.Load(); full != nil {
		return fmt.Sprintf("the disk is full; this coordinator starts once the disk has free space: %v", *full)
	}
	if f := s.claimed.Load(); f != nil && f.Waits() != "" {
		return f.Waits()
	}
	return "this coordinator is starting"
}

// awaitRoom calls try until it succeeds, or fails for another reason than a full disk. A
// full disk damages nothing, and an operator who makes room should not have to start the
// coordinator again.
func (s *startup) awaitRoom(ctx context.Context, try func() error) error {
	for {
		err := try()
		if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
			s.full.Store(nil)
			return err
		}
		s.full.Store(&err)
		s.cfg.Log.Error("the disk is full; the coordinator starts once the disk has free space", "error", err)
		wait.For(ctx, s.cfg.timeouts.DiskProbe)
		if ctx.Err() != nil {
			return err
		}
	}
}

// decide claims Raft's folder, and finds out how this coordinator begins and in which
// cluster.
func (s *startup) decide(ctx context.Context) error {
	err := s.awaitRoom(ctx, func() (err error) {
		if s.folder, err = s.claim(); err != nil {
			return err
		}
		s.claimed.Store(s.folder)
		s.full.Store(nil) // the decision may take long
		i := s.folder.Identity()
		switch {
		case s.damaged != nil && i.Cluster == "":
			err = s.damaged // no file says which cluster it was
		case s.joinedCluster != "" && i.Cluster == "":
			err = s.folder.Join(s.joinedCluster)
		case s.namedCluster != "" && i.Cluster != "" && i.Cluster != s.namedCluster:
			err = fmt.Errorf("%s: %w: the Raft log is from cluster %s, but the CLUSTER file names cluster %s", s.cfg.Dir, store.ErrFolder, i.Cluster, s.namedCluster)
		default:
			err = s.folder.Decide(ctx)
		}
		if err != nil {
			s.claimed.Store(nil)
			err = errors.Join(err, s.folder.Close())
			s.folder = nil
		}
		return err
	})
	if err != nil {
		return err
	}
	i := s.folder.Identity()
	s.peers.clusterID = i.Cluster
	s.book.founded(i.Founders, s.peers.entries())
	return s.peers.checkDuplicate(ctx, i.Directory)
}

// writeFolder makes the folder and writes its files.
func (s *startup) writeFolder(ctx context.Context) error {
	err := s.awaitRoom(ctx, func() error {
		if err := os.MkdirAll(s.cfg.Dir, 0o700); err != nil {
			return err
		}
		if err := setAsideMembers(s.cfg.Dir); err != nil {
			return err
		}
		if err := s.book.kept.Load().write(s.cfg.Dir); err != nil {
			return err
		}
		return keepClusterID(s.cfg.Dir, s.peers.clusterID)
	})
	if err != nil {
		return fmt.Errorf("the coordinator's folder cannot be used: %w", err)
	}
	return nil
}

// openStore opens the log. A damaged log is set aside if others have a copy, and
// fetched from them.
func (s *startup) openStore(ctx context.Context, listener net.Listener) (opened *store.Store, err error) {
	cfg := s.storeConfig()
	cfg.Listener = listener
	open := func() (err error) {
		if s.folder.Identity().Cluster == "" { // the folder was reset
			if err := s.folder.Join(s.peers.clusterID); err != nil {
				return err
			}
		}
		s.full.Store(nil) // reading the log may take long
		f := s.folder
		s.folder = nil // Open takes it, also if it fails
		opened, err = store.Open(cfg, f)
		cfg.Listener = nil // Open closes it if it fails
		return err
	}
	err = s.awaitRoom(ctx, func() (err error) {
		if s.folder == nil { // an earlier attempt has released it
			if s.folder, err = s.claim(); err != nil {
				return err
			}
		}
		err = open()
		if !errors.Is(err, store.ErrCorrupt) || !s.replicated() {
			return err
		}
		if s.folder, err = s.reset(err); err != nil {
			return err
		}
		return open()
	})
	s.claimed.Store(nil)
	if err != nil {
		return nil, err
	}
	s.book.store.Store(opened)
	var given, have []string
	for _, p := range s.cfg.Peers {
		given = append(given, p.ID)
	}
	for _, m := range opened.Members() {
		have = append(have, m.ID)
	}
	slices.Sort(given)
	have = slices.Compact(have)
	if len(given) > 1 && len(have) > 0 && !slices.Equal(given, have) {
		s.cfg.Log.Warn("--peers differs from the list of members; the list of members is used", "peers", given, "members", have)
	}
	return opened, nil
}

// claim claims Raft's folder. If the folder does not prove what this coordinator
// acknowledged, and others have that too, claim resets it.
func (s *startup) claim() (*store.Folder, error) {
	f, err := store.Claim(s.storeConfig())
	if errors.Is(err, store.ErrCorrupt) && s.replicated() {
		return s.reset(err)
	}
	return f, err
}

// reset sets Raft's folder aside and begins another one.
func (s *startup) reset(why error) (*store.Folder, error) {
	s.cfg.Log.Error("the Raft log of this coordinator is damaged and set aside; the coordinator fetches the log from the others, and then votes again", "error", why)
	return store.Reset(s.storeConfig())
}

// replicated reports whether other coordinators have the data of this one.
func (s *startup) replicated() bool { return len(s.book.others()) > 0 }

func (s *startup) storeConfig() store.Config {
	cfg := store.Config{
		ID: s.cfg.ID, Dir: filepath.Join(s.cfg.Dir, "raft"), RaftAddr: s.cfg.Listen.Raft,
		Heartbeat: s.cfg.Heartbeat, Election: s.cfg.Election, SnapshotLogBytes: s.cfg.SnapshotBytes, TLS: s.cfg.TLS, Logger: s.cfg.Log,
		Committed: s.committed,
		PeerList:  s.cfg.peerList(), Cluster: s.namedCluster, Locate: s.book.raft, Ask: s.peers.ask,
	}
	for _, m := range s.book.known() {
		cfg.Peers = append(cfg.Peers, store.Peer{ID: m.ID, RaftAddr: m.Raft})
	}
	return cfg
}

// close releases Raft's folder, unless the store has taken it.
func (s *startup) close() {
	if s.folder != nil {
		s.folder.Close()
	}
}
