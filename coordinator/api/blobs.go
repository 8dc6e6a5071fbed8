package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

// errFull says that imports are refused because the disk is nearly full.
var errFull = errors.New("the coordinator's disk is nearly full")

// minFreeShare is the share of free disk below which imports are refused; commits
// go on.
const minFreeShare = 0.05

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
		return fmt.Errorf("%w: %s (blob %.80s) is not on the cluster: upload the blob first", errBad, what, digest)
	}
	return fmt.Errorf("%s (blob %s): %w", what, digest, err)
}

// sent has a majority keep a blob that a client sent before; what names it in errors.
func (s *Server) sent(ctx context.Context, what, digest string) error {
	if err := s.present(ctx, digest); err != nil {
		return notSent(what, digest, err)
	}
	return s.secure(ctx, digest)
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
	blob, err := s.cfg.Blobs.Open(r.Context(), r.PathValue("digest"))
	if err != nil && !errors.Is(err, bus.ErrOffline) {
		err = fmt.Errorf("%w: %w", state.ErrNotFound, err)
	}
	if err != nil {
		s.answer(w, nil, err)
		return
	}
	s.stream(w, blob)
}

// stream answers with a blob, as fast as it is read, and closes it.
func (s *Server) stream(w http.ResponseWriter, blob *blobs.Blob) {
	defer blob.Close()
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.FormatInt(blob.Size(), 10))
	if _, err := io.Copy(w, io.NewSectionReader(blob, 0, blob.Size())); err != nil {
		s.cfg.Log.Debug("a response could not be sent", "error", err)
	}
}
