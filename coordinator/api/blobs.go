package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/internal/bus"
)

// errFull says that imports are refused because the disk is nearly full.
var errFull = errors.New("the coordinator's disk is nearly full")

// minFreeShare is the share of free disk below which imports are refused; commits
// go on.
const minFreeShare = 0.05

func (s *Server) putBlob(w http.ResponseWriter, r *http.Request) (any, error) {
	digest := r.PathValue("digest")
	if free, err := blobs.FreeShare(s.cfg.Blobs.Folder.Dir()); err == nil && free < minFreeShare {
		return nil, fmt.Errorf("%w: %.1f %% are free, imports need %.0f %%", errFull, 100*free, 100*minFreeShare)
	}
	if r.ContentLength > maxBlob {
		return nil, fmt.Errorf("%w: blob %.80q of %d bytes, at most %d are possible", errBad, digest, r.ContentLength, maxBlob)
	}
	size := r.ContentLength
	if size < 0 {
		size = maxBlob
	}
	if err := s.uploads.Acquire(r.Context(), size); err != nil {
		return nil, err
	}
	defer s.uploads.Release(size)
	data, err := s.receive(w, r)
	if err != nil {
		return nil, fmt.Errorf("%w: blob %s: %w", errBad, digest, err)
	}
	done := func(bool) {}
	if !s.cfg.Blobs.Folder.Has(digest) {
		if done, err = s.meter.reserve(int64(len(data))); err != nil {
			return nil, err
		}
	}
	err = s.cfg.Blobs.Receive(r.Context(), digest, data)
	done(s.cfg.Blobs.Folder.Has(digest)) // also where no majority has it yet
	if errors.Is(err, blobs.ErrCorrupt) {
		return nil, bad{err}
	}
	return nil, err
}

// receive reads the body of an upload. A client that stops in the middle of it must
// not keep for ever what uploads share.
func (s *Server) receive(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	conn := http.NewResponseController(w)
	if err := conn.SetReadDeadline(time.Now().Add(s.uploadWithin)); err == nil { // else r comes from no connection
		defer conn.SetReadDeadline(time.Time{})
	}
	return io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBlob))
}

// present returns nil where this coordinator has a blob that was put before, on the
// leader of then perhaps: it is fetched from another where it is not here. The error
// wraps blobs.ErrMissing or blobs.ErrDigest where nobody was sent it, and is another
// while somebody who may have it does not answer.
func (s *Server) present(ctx context.Context, digest string) error {
	if _, err := s.cfg.Blobs.Folder.Path(digest); err != nil || s.cfg.Blobs.Folder.Has(digest) {
		return err
	}
	return s.cfg.Blobs.Fetch(ctx, digest)
}

// notSent makes an error of present that of the request, where it is its fault.
func notSent(what, digest string, err error) error {
	if errors.Is(err, blobs.ErrMissing) || errors.Is(err, blobs.ErrDigest) {
		return fmt.Errorf("%w: %s (blob %.80s) was not sent", errBad, what, digest)
	}
	return fmt.Errorf("%s (blob %s): %w", what, digest, err)
}

// secure returns once a majority has a blob that is present: whatever refers to it
// may be committed now. A copy here alone is not enough: a put that found no majority
// leaves one.
func (s *Server) secure(ctx context.Context, digest string) error {
	size, err := s.cfg.Blobs.Folder.Size(digest)
	if err != nil {
		return err
	}
	return s.cfg.Blobs.Spread(ctx, digest, uint64(size))
}

func (s *Server) getBlob(w http.ResponseWriter, r *http.Request) {
	data, err := s.cfg.Blobs.Get(r.Context(), r.PathValue("digest"))
	if err != nil && !errors.Is(err, bus.ErrOffline) {
		err = fmt.Errorf("%w: %w", state.ErrNotFound, err)
	}
	if err != nil {
		s.answer(w, nil, err)
		return
	}
	s.raw(w, data)
}

func (s *Server) raw(w http.ResponseWriter, data []byte) {
	w.Header().Set("Content-Type", "application/octet-stream")
	if _, err := w.Write(data); err != nil {
		s.cfg.Log.Debug("an answer was not sent", "error", err)
	}
}
