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
	"time"

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
		return nil, fmt.Errorf("%w: the backup comes from a cluster with protocol version %d (Coppice %s); this version has protocol %d", archive.ErrVersion, a.Header.Protocol, a.Header.Version, protocol.Version)
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
		Datasets: len(s.Datasets()), Jobs: len(s.Jobs()), Tokens: next.ValidTokens(time.Now().Unix()), Revoked: len(next.Revocations()), From: h,
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
		return nil, fmt.Errorf("%w: the state is from log index %d, but the header says index %d", archive.ErrCorrupt, s.Index(), a.Header.Index)
	}
	return s, nil
}

// restoreBlobs writes the other records, and refuses a backup that lacks one of refs.
// It deletes from refs.
func restoreBlobs(ctx context.Context, dir string, a *archive.Reader, refs digests.Set, progress func(blobs, of int)) error {
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
