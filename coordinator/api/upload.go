package api

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/coppice-ldl/coppice/internal/blobs"
)

// uploadPiece is how many bytes of an upload are in memory, and uploadLook after how
// many disk and quota are looked at again.
const (
	uploadPiece = 64 << 10
	uploadLook  = 4 << 20
)

// upload is a blob that a client sends: a file without a name, until it is whole.
type upload struct {
	s      *Server
	w      *blobs.Writer
	counts bool         // in the quota: it is not here yet
	leases []func(bool) // parts of the quota
	room   int64        // of them, not used yet
}

func (s *Server) putBlob(_ http.ResponseWriter, r *http.Request) (any, error) {
	digest := r.PathValue("digest")
	folder := s.cfg.Blobs.Folder
	u := &upload{s: s, counts: !folder.Has(digest)}
	if err := u.admit(digest, r.ContentLength); err != nil {
		return nil, err
	}
	var err error
	if u.w, err = folder.Writer(); err != nil {
		return nil, err
	}
	defer func() { u.end(folder.Has(digest)) }() // also where no majority has it yet
	if err := u.receive(r.Body); err != nil {
		if errors.Is(err, errFull) || errors.Is(err, errBlobQuota) {
			return nil, err
		}
		return nil, fmt.Errorf("%w: blob %.80q: %w", errBad, digest, err)
	}
	err = s.cfg.Blobs.Receive(r.Context(), digest, u.w)
	if errors.Is(err, blobs.ErrCorrupt) {
		return nil, bad{err}
	}
	return nil, err
}

// admit refuses, before a byte has come, what could not be stored; size is -1 where
// it is not announced.
func (u *upload) admit(digest string, size int64) error {
	if !blobs.Valid(digest) {
		return fmt.Errorf("%w: %w: %.80q", errBad, blobs.ErrDigest, digest)
	}
	if size > maxBlob {
		return fmt.Errorf("%w: blob %.80q has %d bytes, want at most %d", errBad, digest, size, maxBlob)
	}
	if err := u.disk(); err != nil || !u.counts || size < 0 {
		return err
	}
	done, err := u.s.meter.reserve(size)
	if err == nil {
		done(false) // it is taken as the bytes come
	}
	return err
}

// disk refuses bytes where the disk is nearly full.
func (u *upload) disk() error {
	if free, err := blobs.FreeShare(u.s.cfg.Blobs.Folder.Dir()); err == nil && free < minFreeShare {
		return fmt.Errorf("%w: %.1f %% of the disk is free, an import needs %.0f %%", errFull, 100*free, 100*minFreeShare)
	}
	return nil
}

// receive writes the body to the file.
func (u *upload) receive(body io.Reader) error {
	buf := make([]byte, uploadPiece)
	for {
		n, err := body.Read(buf)
		if n > 0 {
			if err := u.write(buf[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (u *upload) write(b []byte) error {
	if u.w.Size()+int64(len(b)) > maxBlob {
		return fmt.Errorf("the blob is larger than %d bytes", maxBlob)
	}
	if int64(len(b)) > u.room {
		if err := u.lease(uploadLook); err != nil {
			if err = u.lease(int64(len(b))); err != nil { // the last of the quota
				return err
			}
		}
	}
	u.room -= int64(len(b))
	_, err := u.w.Write(b)
	return err
}

// lease takes room for n bytes more.
func (u *upload) lease(n int64) error {
	if err := u.disk(); err != nil {
		return err
	}
	if u.counts {
		done, err := u.s.meter.reserve(n)
		if err != nil {
			return err
		}
		u.leases = append(u.leases, done)
	}
	u.room += n
	return nil
}

// end drops the file where it is not whole, and gives the quota back where the blob is
// not stored.
func (u *upload) end(stored bool) {
	if err := u.w.Close(); err != nil {
		u.s.cfg.Log.Warn("the file of an unfinished upload could not be deleted", "error", err)
	}
	for _, done := range u.leases {
		done(stored)
	}
}
