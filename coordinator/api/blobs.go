package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/internal/bus"
)

// errFull says that imports are refused because the disk is nearly full.
var errFull = errors.New("the coordinator's disk is nearly full")

// minFreeShare is the share of free disk below which imports are refused; commits
// go on.
const minFreeShare = 0.05

func (s *Server) putBlob(r *http.Request) (any, error) {
	digest := r.PathValue("digest")
	if free, err := blobs.FreeShare(s.cfg.Blobs.Folder.Dir()); err == nil && free < minFreeShare {
		return nil, fmt.Errorf("%w: %.1f %% are free, imports need %.0f %%", errFull, 100*free, 100*minFreeShare)
	}
	if r.ContentLength > maxBlob {
		return nil, fmt.Errorf("%w: blob %.80q of %d bytes, at most %d are possible", errBad, digest, r.ContentLength, maxBlob)
	}
	data, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBlob))
	if err != nil {
		return nil, fmt.Errorf("%w: blob %s: %w", errBad, digest, err)
	}
	if err := s.cfg.Blobs.Receive(r.Context(), digest, data); errors.Is(err, blobs.ErrCorrupt) {
		return nil, bad{err}
	} else if err != nil {
		return nil, err
	}
	return nil, nil
}

// present reports whether this coordinator has a blob that was put before, on the
// leader of then perhaps: it is fetched from another where it is not here.
func (s *Server) present(ctx context.Context, digest string) bool {
	return blobs.Valid(digest) && (s.cfg.Blobs.Folder.Has(digest) || s.cfg.Blobs.Fetch(ctx, digest) == nil)
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
