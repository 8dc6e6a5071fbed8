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
	"os"
	"path/filepath"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/internal/archive"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/internal/digests"
	"github.com/coppice-ldl/coppice/internal/files"
	"github.com/coppice-ldl/coppice/protocol"
)

// RestoreConfig says which folder Restore makes.
type RestoreConfig struct {
	Dir   string // empty or missing
	ID    string
	Peers []Peer // of the new cluster; empty: this coordinator alone
	// Progress, where set, is told how many of the blobs are there.
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
	From     archive.Header `json:"from"`
}

// ErrNotEmpty is wrapped where the folder of Restore holds something.
var ErrNotEmpty = errors.New("the folder is not empty")

// restoringName is the file that marks a folder which is not whole yet.
const restoringName = "RESTORING"

// life is the least distance between the log indices of two lives of a cluster,
// and what the later one's begins with is a multiple of: so numbers that the old
// life gave out after the backup do not come again.
const life = 1_000_000

// Restore makes the folder of a coordinator of a new cluster from a backup, all of
// which is checked. Each coordinator of the cluster is made from the same backup
// with the same peers. Where it fails the folder is as it was. Errors wrap
// ErrUsage, ErrNotEmpty, archive.ErrCorrupt or archive.ErrVersion.
func Restore(ctx context.Context, backup io.Reader, c RestoreConfig) (r *Restored, err error) {
	cfg := Config{ID: c.ID, Dir: c.Dir, Peers: c.Peers}
	if err := cmp.Or(cfg.checkRestored(), checkEmpty(c.Dir)); err != nil {
		return nil, err
	}
	if cfg, err = cfg.prepared(); err != nil {
		return nil, err
	}
	a, err := archive.NewReader(backup)
	if err != nil {
		return nil, err
	}
	if a.Header.Protocol != protocol.Version {
		return nil, fmt.Errorf("%w: the backup comes from a cluster with protocol version %d (Coppice %s); this version has protocol %d", archive.ErrVersion, a.Header.Protocol, a.Header.Version, protocol.Version)
	}
	made := missingFolders(c.Dir)
	defer func() {
		if err != nil {
			err = errors.Join(err, empty(c.Dir, made))
		}
	}()
	if err := beginRestore(c.Dir); err != nil {
		return nil, err
	}
	w := &restoring{ctx: ctx, cfg: &cfg, a: a, progress: c.Progress}
	if r, err = w.restore(); err != nil {
		return nil, err
	}
	if err := files.SyncFolder(c.Dir); err != nil { // what was restored outlives the mark
		return nil, err
	}
	return r, os.Remove(filepath.Join(c.Dir, restoringName))
}

// checkEmpty refuses a folder that holds something.
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

// missingFolders lists a folder and those that it is in which do not exist, the
// innermost first.
func missingFolders(dir string) (list []string) {
	for path := filepath.Clean(dir); ; path = filepath.Dir(path) {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return list
		}
		list = append(list, path)
	}
}

// beginRestore makes the folder and marks it as one that is not whole.
func beginRestore(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("the coordinator's folder cannot be used: %w", err)
	}
	return files.Replace(filepath.Join(dir, restoringName), []byte("coppice restore is still running or was interrupted\n"), 0o600)
}

// checkRestored refuses a folder in which a restore did not end.
func (c *Config) checkRestored() error {
	_, err := os.Stat(filepath.Join(c.Dir, restoringName))
	if err == nil {
		return fmt.Errorf("%s holds the files of an interrupted restore; empty the folder and restore again", c.Dir)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// empty removes what a restore that failed wrote, the mark last, and the folders that
// it made.
func empty(dir string, made []string) error {
	var errs []error
	for _, name := range []string{"blobs", "raft", clusterName, clusterCopy, clusterName + ".tmp", clusterCopy + ".tmp", restoringName + ".tmp", restoringName} {
		errs = append(errs, os.RemoveAll(filepath.Join(dir, name)))
	}
	for _, path := range made {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// restoring is a restore on its way.
type restoring struct {
	ctx      context.Context
	cfg      *Config
	a        *archive.Reader
	progress func(blobs, of int)
}

func (w *restoring) restore() (*Restored, error) {
	s, err := w.state()
	if err != nil {
		return nil, err
	}
	if err := w.blobs(s.References()); err != nil {
		return nil, err
	}
	next := s.Reborn((s.Index()/life + 2) * life)
	var peers []store.Peer
	for _, p := range w.cfg.Peers {
		peers = append(peers, store.Peer{ID: p.ID, RaftAddr: p.addr(1)})
	}
	cluster := w.clusterID()
	at := store.Config{ID: w.cfg.ID, Dir: filepath.Join(w.cfg.Dir, "raft"), Peers: peers, Ask: noAsk, Logger: w.cfg.Log}
	if err := store.Seed(at, cluster, next); err != nil {
		return nil, err
	}
	r := &Restored{
		Dir: w.cfg.Dir, ID: w.cfg.ID, Cluster: cluster, Index: next.Index(),
		Datasets: len(s.Datasets()), Jobs: len(s.Jobs()), From: w.a.Header,
	}
	return r, w.cfg.keepClusterID(r.Cluster)
}

// noAsk takes the place of what asks other coordinators, where none is asked.
func noAsk(context.Context, string) (store.Answer, error) {
	return store.Answer{}, errors.New("a restore does not ask other coordinators")
}

// clusterID names the new cluster: another than before, so that no process of the
// old life is taken for one of this, and the same on each of its coordinators.
func (w *restoring) clusterID() string {
	h := w.a.Header
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %d %s", h.Cluster, h.Index, h.Created, w.cfg.peerList()))
	return hex.EncodeToString(sum[:6])
}

// state reads the first record.
func (w *restoring) state() (*state.State, error) {
	record, err := w.a.Next()
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
	if s.Index() != w.a.Header.Index {
		return nil, fmt.Errorf("%w: the state is from log index %d, but the header says index %d", archive.ErrCorrupt, s.Index(), w.a.Header.Index)
	}
	return s, nil
}

// blobs reads the rest and refuses a backup that lacks a blob.
func (w *restoring) blobs(refs digests.Set) error {
	folder, err := blobs.Open(filepath.Join(w.cfg.Dir, "blobs"))
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		record, err := w.a.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if err := put(folder, record); err != nil {
			return err
		}
		if d, ok := digests.Parse(record.Digest); ok {
			delete(refs, d)
		}
		if w.progress != nil {
			w.progress(n+1, w.a.Header.Blobs)
		}
	}
	for d := range refs {
		return fmt.Errorf("%w: blob %s and %d other blobs are missing in the backup", archive.ErrCorrupt, d, len(refs)-1)
	}
	return nil
}

func put(folder *blobs.Folder, record *archive.Record) error {
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
