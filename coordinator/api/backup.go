package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/replica"
	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/archive"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/internal/digests"
	"github.com/coppice-ldl/coppice/internal/version"
	"github.com/coppice-ldl/coppice/protocol"
)

// backupHandlers answer requests for backups.
type backupHandlers struct {
	responder
	store   *store.Store
	blobs   *replica.Blobs
	cluster func() protocol.Cluster
	backed  func() // if set, called after a complete backup
}

// get streams the state, which has all that was acknowledged before the request, and the
// blobs that it refers to. The state is immutable and its blobs are held, so the cluster
// goes on meanwhile, and even a change of leader does no harm.
func (h *backupHandlers) get(w http.ResponseWriter, r *http.Request) {
	st := h.store.State()
	refs := st.References()
	defer h.blobs.Folder.Hold(refs)()
	b := &backup{state: st, blobs: h.blobs}
	if err := b.prepare(r.Context(), refs); err != nil {
		h.answer(w, nil, err)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	if err := b.write(r.Context(), w, h.cluster().ID); err != nil {
		h.log.Warn("a backup was interrupted", "index", st.Index(), "error", err)
		return
	}
	if h.backed != nil {
		h.backed()
	}
	h.log.Info("a backup was sent", "index", st.Index(), "blobs", len(b.digests), "bytes", b.bytes)
}

// backup is the content of a backup.
type backup struct {
	state   *state.State
	blobs   *replica.Blobs
	digests []string // of the blobs, ascending
	bytes   int64    // of the state and the blobs
	size    int64    // of the state
	sum     string   // SHA-256 of the state
}

// prepare measures the state and the blobs, and fetches the blobs that only another
// coordinator has.
func (b *backup) prepare(ctx context.Context, refs digests.Set) error {
	var n counter
	sum := sha256.New()
	if err := b.state.Encode(io.MultiWriter(&n, sum)); err != nil {
		return err
	}
	b.size, b.sum = int64(n), hex.EncodeToString(sum.Sum(nil))
	b.bytes = b.size
	for d := range refs {
		digest := d.String()
		if !b.blobs.Folder.Has(digest) {
			if err := b.blobs.Fetch(ctx, digest); err != nil {
				return fmt.Errorf("the backup needs blob %s, which cannot be read: %w", digest, err)
			}
		}
		size, err := b.blobs.Folder.Size(digest)
		if err != nil {
			return err
		}
		b.bytes += size
		b.digests = append(b.digests, digest)
	}
	slices.Sort(b.digests)
	return nil
}

// counter counts the bytes that are written to it.
type counter int64

func (n *counter) Write(b []byte) (int, error) {
	*n += counter(len(b))
	return len(b), nil
}

// write writes the archive. It holds neither the state nor a blob in memory.
func (b *backup) write(ctx context.Context, w io.Writer, cluster string) error {
	a, err := archive.NewWriter(w, archive.Header{
		Cluster: cluster, Index: b.state.Index(), Epoch: b.state.Epoch(), Created: time.Now().Unix(),
		Version: version.String, Protocol: protocol.Version, Numerics: round.Numerics,
		Blobs: len(b.digests), Bytes: b.bytes,
	})
	if err != nil {
		return err
	}
	encoded, encode := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		encode.CloseWithError(b.state.Encode(encode))
	}()
	err = a.Record(archive.State, b.sum, b.size, encoded)
	encoded.Close() // ends Encode if Record gave up
	<-done
	if err != nil {
		return err
	}
	for _, digest := range b.digests {
		blob, err := b.open(ctx, digest)
		if err != nil {
			a.Fail(err)
			return err
		}
		err = a.Record(archive.Blob, digest, blob.Size(), blob)
		blob.Close()
		if err != nil {
			return err
		}
	}
	return a.Close()
}

// open opens a blob after it has read all bytes, whatever was verified earlier. A blob
// that is corrupt here is fetched again.
func (b *backup) open(ctx context.Context, digest string) (*blobs.Blob, error) {
	if err := b.blobs.Folder.Verify(digest); err != nil {
		if fetched := b.blobs.Fetch(ctx, digest); fetched != nil {
			return nil, errors.Join(err, fetched)
		}
	}
	return b.blobs.Folder.OpenBlob(digest)
}
