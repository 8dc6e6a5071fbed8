package coordinator

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/internal/archive"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/internal/digests"
	"github.com/coppice-ldl/coppice/internal/files"
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
			err = fmt.Errorf("%s: %w: the Raft log is from cluster %s, but the CLUSTER file names cluster %s", s.cfg.Dir,
				store.ErrFolder, i.Cluster, s.namedCluster)
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
		s.cfg.Log.Warn("--peers differs from the list of members; the list of members is used", "peers", given,
			"members", have)
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
	s.cfg.Log.Error("the Raft log of this coordinator is damaged and set aside; the coordinator fetches the log from "+
		"the others, and then votes again", "error", why)
	return store.Reset(s.storeConfig())
}

// replicated reports whether other coordinators have the data of this one.
func (s *startup) replicated() bool { return len(s.book.others()) > 0 }

func (s *startup) storeConfig() store.Config {
	cfg := store.Config{
		ID: s.cfg.ID, Dir: filepath.Join(s.cfg.Dir, "raft"), RaftAddr: s.cfg.Listen.Raft,
		Heartbeat: s.cfg.Heartbeat, Election: s.cfg.Election, SnapshotLogBytes: s.cfg.SnapshotBytes, TLS: s.cfg.TLS,
		Logger:    s.cfg.Log,
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

// RestoreConfig says which folder Restore makes.
type RestoreConfig struct {
	Dir   string // empty or missing
	ID    string
	Peers []Peer // of the new cluster; if there are none, this coordinator is alone
	// DropTokens is true if the new cluster begins without tokens of users. It must be the same on each
	// coordinator.
	DropTokens bool
	// Progress, if set, is called with the number of blobs that are restored, and the
	// number of all.
	Progress func(blobs, of int)
}

// Restored describes what was restored.
type Restored struct {
	Dir      string         `json:"dir"`
	ID       string         `json:"id"`
	Cluster  string         `json:"cluster"` // id of the new cluster
	Index    uint64         `json:"index"`   // at which its log begins
	Datasets int            `json:"datasets"`
	Jobs     int            `json:"jobs"`
	Tokens   int            `json:"tokens"`               // valid tokens of users that the new cluster has
	Revoked  int            `json:"revoked_certificates"` // certificates that the new cluster refuses
	From     archive.Header `json:"from"`
}

// ErrNotEmpty is wrapped by the error of Restore if the folder is not empty.
var ErrNotEmpty = errors.New("the folder is not empty")

// life divides log indices between the lives of a cluster. The log of a restored
// cluster begins at a multiple of life, at least life above the index of the backup. So
// it never uses an index that the old cluster used after the backup.
const life = 1_000_000

// Restore makes the folder of a coordinator of a new cluster from a backup. It checks
// the whole backup. Each coordinator of the cluster is made from the same backup with
// the same peers. After an error the folder is as it was. Errors wrap ErrUsage,
// ErrNotEmpty, archive.ErrCorrupt or archive.ErrVersion.
func Restore(ctx context.Context, backup io.Reader, c RestoreConfig) (r *Restored, err error) {
	if err := cmp.Or(checkRestored(c.Dir), checkEmpty(c.Dir)); err != nil {
		return nil, err
	}
	cfg, err := Config{ID: c.ID, Dir: c.Dir, Peers: c.Peers}.prepared(false)
	if err != nil {
		return nil, err
	}
	a, err := archive.NewReader(backup)
	if err != nil {
		return nil, err
	}
	if a.Header.Protocol != protocol.Version {
		return nil, fmt.Errorf("%w: the backup comes from a cluster with protocol version %d (Coppice %s); this version "+
			"has protocol %d", archive.ErrVersion, a.Header.Protocol, a.Header.Version, protocol.Version)
	}
	made := missingFolders(c.Dir)
	defer func() {
		if err != nil {
			err = errors.Join(err, empty(c.Dir, made))
		}
	}()
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("the coordinator's folder cannot be used: %w", err)
	}
	mark := filepath.Join(c.Dir, restoringName)
	if err := files.Replace(mark, []byte("coppice restore is still running or was interrupted\n"), 0o600); err != nil {
		return nil, err
	}
	if r, err = restore(ctx, cfg, a, &c); err != nil {
		return nil, err
	}
	if err := files.SyncFolder(c.Dir); err != nil { // before the mark is deleted
		return nil, err
	}
	return r, os.Remove(mark)
}

// checkEmpty refuses a folder that is not empty.
func checkEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the coordinator's folder cannot be used: %w", err)
	}
	for _, e := range entries {
		if e.Name() != "lost+found" {
			return fmt.Errorf("%s: %w: it holds %q; give a folder that is empty or does not exist", dir, ErrNotEmpty, e.Name())
		}
	}
	return nil
}

// missingFolders lists dir and the folders above it that do not exist, the innermost
// first.
func missingFolders(dir string) (list []string) {
	for path := filepath.Clean(dir); ; path = filepath.Dir(path) {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return list
		}
		list = append(list, path)
	}
}

// empty deletes what a failed restore wrote, the mark last, and then the folders that
// it made.
func empty(dir string, made []string) error {
	var errs []error
	for _, name := range []string{"blobs", "raft", clusterName, clusterCopy, clusterName + ".tmp", clusterCopy + ".tmp",
		restoringName + ".tmp", restoringName} {
		errs = append(errs, os.RemoveAll(filepath.Join(dir, name)))
	}
	for _, path := range made {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// restore writes the files of the folder.
func restore(ctx context.Context, cfg *settings, a *archive.Reader, c *RestoreConfig) (*Restored, error) {
	s, err := readState(a)
	if err != nil {
		return nil, err
	}
	if err := restoreBlobs(ctx, filepath.Join(cfg.Dir, "blobs"), a, s.References(), c.Progress); err != nil {
		return nil, err
	}
	next := s.Reborn((s.Index()/life + 2) * life)
	drops := ""
	if c.DropTokens {
		next, drops = next.WithoutTokens(), " without tokens"
	}
	// The new cluster has another id than the old one, so that no process takes one for
	// the other. It is the same id on each coordinator.
	h := a.Header
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %d %s%s", h.Cluster, h.Index, h.Created, cfg.peerList(), drops))
	cluster := hex.EncodeToString(sum[:6])
	var peers []store.Peer
	for _, p := range cfg.Peers {
		peers = append(peers, store.Peer{ID: p.ID, RaftAddr: p.addr(1)})
	}
	noAsk := func(context.Context, string) (store.Answer, error) {
		return store.Answer{}, errors.New("a restore does not ask other coordinators")
	}
	at := store.Config{ID: cfg.ID, Dir: filepath.Join(cfg.Dir, "raft"), Peers: peers, Ask: noAsk, Logger: cfg.Log}
	if err := store.Seed(at, cluster, next); err != nil {
		return nil, err
	}
	r := &Restored{
		Dir: cfg.Dir, ID: cfg.ID, Cluster: cluster, Index: next.Index(),
		Datasets: len(s.Datasets()), Jobs: len(s.Jobs()), Tokens: next.ValidTokens(time.Now().Unix()),
		Revoked: len(next.Revocations()), From: h,
	}
	return r, keepClusterID(cfg.Dir, cluster)
}

// readState reads the first record of a backup.
func readState(a *archive.Reader) (*state.State, error) {
	record, err := a.Next()
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: the backup has no state of the cluster", archive.ErrCorrupt)
	}
	if err != nil {
		return nil, err
	}
	if record.Kind != archive.State {
		return nil, fmt.Errorf("%w: the first record is not the state of the cluster", archive.ErrCorrupt)
	}
	s, err := state.Decode(record)
	if err != nil {
		return nil, fmt.Errorf("%w: the state of the cluster in the backup cannot be read: %w", archive.ErrCorrupt, err)
	}
	if s.Index() != a.Header.Index {
		return nil, fmt.Errorf("%w: the state is from log index %d, but the header says index %d", archive.ErrCorrupt,
			s.Index(), a.Header.Index)
	}
	return s, nil
}

// restoreBlobs writes the other records, and refuses a backup that lacks one of refs.
// It deletes from refs.
func restoreBlobs(ctx context.Context, dir string, a *archive.Reader, refs digests.Set,
	progress func(blobs, of int)) error {
	folder, err := blobs.Open(dir)
	if err != nil {
		return err
	}
	for n := 1; ; n++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		record, err := a.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if err := putBlob(folder, record); err != nil {
			return err
		}
		if d, ok := digests.Parse(record.Digest); ok {
			delete(refs, d)
		}
		if progress != nil {
			progress(n, a.Header.Blobs)
		}
	}
	for d := range refs {
		return fmt.Errorf("%w: blob %s and %d other blobs are missing in the backup", archive.ErrCorrupt, d, len(refs)-1)
	}
	return nil
}

func putBlob(folder *blobs.Folder, record *archive.Record) error {
	b, err := folder.Writer()
	if err != nil {
		return err
	}
	defer b.Close()
	if _, err := io.Copy(b, record); err != nil {
		return err
	}
	_, err = b.Commit(record.Digest)
	return err
}
