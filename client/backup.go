package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/coppice-ldl/coppice/internal/archive"
)

// The times of a backup: its first byte comes once the coordinator has all blobs.
const (
	backupTimeout = 30 * 24 * time.Hour
	firstSilence  = 10 * time.Minute
	backupSilence = 30 * time.Second
)

// errMute says why a backup was given up.
var errMute = errors.New("the coordinator stopped sending")

// BackupProgress is how far a backup is.
type BackupProgress struct {
	Blobs, OfBlobs int
	Bytes, OfBytes int64
}

// Backup writes a backup of the cluster to w and checks all of it on the way. A
// backup that breaks off is an error, and w then has a part of it. progress may be
// nil.
func (c *Client) Backup(ctx context.Context, w io.Writer, progress func(BackupProgress)) (h archive.Header, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	quiet := time.AfterFunc(firstSilence, func() { cancel(errMute) })
	defer quiet.Stop()
	each := func(h *archive.Header, blobs int, bytes int64) {
		if progress != nil {
			progress(BackupProgress{blobs, h.Blobs, bytes, h.Bytes})
		}
	}
	var broken error // once bytes came: then it is not tried again
	err = c.do(ctx, &call{method: http.MethodGet, path: at("backup"), timeout: backupTimeout, take: func(r io.Reader) error {
		h, broken = archive.Verify(io.TeeReader(&heard{r, quiet}, w), each)
		return nil
	}})
	if err = errors.Join(err, broken); err == nil {
		return h, nil
	}
	if cause := context.Cause(ctx); errors.Is(cause, errMute) {
		return h, fmt.Errorf("%w: no bytes arrived for %v", errMute, backupSilence)
	} else if cause != nil {
		return h, cause
	}
	return h, err
}

// heard winds the clock with every byte.
type heard struct {
	r     io.Reader
	quiet *time.Timer
}

func (h *heard) Read(b []byte) (int, error) {
	n, err := h.r.Read(b)
	h.quiet.Reset(backupSilence)
	return n, err
}
