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
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/archive"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/internal/digests"
	"github.com/coppice-ldl/coppice/internal/version"
	"github.com/coppice-ldl/coppice/protocol"
)

// backup streams the state after all that was acknowledged before the request, and
// the blobs that it refers to. The state never changes, and its blobs are held, so
// the cluster goes on meanwhile, and even a change of leader does no harm.
func (s *Server) backup(w http.ResponseWriter, r *http.Request) {
	st := s.cfg.Store.State()
	refs := st.References()
	defer s.cfg.Blobs.Folder.Hold(refs)()
	b := &backup{state: st, blobs: s.cfg.Blobs}
	if err := b.gather(r.Context(), refs); err != nil {
		s.answer(w, nil, err)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	if err := b.write(r.Context(), w, s.cfg.Cluster().ID); err != nil {
		s.cfg.Log.Warn("a backup was interrupted", "index", st.Index(), "error", err)
		return
	}
	if s.cfg.Backed != nil {
		s.cfg.Backed()
	}
	s.cfg.Log.Info("a backup was sent", "index", st.Index(), "blobs", len(b.digests), "bytes", b.bytes)
}

// backup is one on its way.
type backup struct {
	state   *state.State
	blobs   *replica.Blobs
	digests []string // ascending
	bytes   int64    // of the blobs and the state
	size    int64    // of the state
	sum     string   // SHA-256 of the state
}

// gather measures the state and brings the blobs here that another coordinator
// has.
func (b *backup) gather(ctx context.Context, refs digests.Set) error {
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

// counter counts what is written to it.
type counter int64

func (n *counter) Write(b []byte) (int, error) {
	*n += counter(len(b))
	return len(b), nil
}

func (b *backup) write(ctx context.Context, w io.Writer, cluster string) error {
	a, err := archive.NewWriter(w, archive.Header{
		Cluster: cluster, Index: b.state.Index(), Epoch: b.state.Epoch(), Created: time.Now().Unix(),
		Version: version.String, Protocol: protocol.Version, Numerics: round.Numerics,
		Blobs: len(b.digests), Bytes: b.bytes,
	})
	if err != nil {
		return err
	}
	if err := b.writeState(a); err != nil {
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

func (b *backup) writeState(a *archive.Writer) error {
	r, w := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.CloseWithError(b.state.Encode(w))
	}()
	err := a.Record(archive.State, b.sum, b.size, r)
	r.Close() // ends Encode where Record gave up
	<-done
	return err
}

// open opens a blob after reading all of it, whatever was found earlier: it is
// fetched again where it has become corrupt here.
func (b *backup) open(ctx context.Context, digest string) (*blobs.Blob, error) {
	if err := b.blobs.Folder.Verify(digest); err != nil {
		if fetched := b.blobs.Fetch(ctx, digest); fetched != nil {
			return nil, errors.Join(err, fetched)
		}
	}
	return b.blobs.Folder.OpenBlob(digest)
}
