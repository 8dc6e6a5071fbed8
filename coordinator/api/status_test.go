package api

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"github.com/coppice-ldl/coppice/internal/files"
)

// A client asks another coordinator if the disk or the folder of this one fails.
func TestStatusOfOwnDisk(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{&fs.PathError{Op: "open", Path: "c/blobs/tmp-1", Err: syscall.ENOENT}, 503},
		{fmt.Errorf("blobs: %w", &fs.PathError{Op: "write", Path: "c/blobs/tmp-1", Err: syscall.EIO}), 503},
		{&fs.PathError{Op: "open", Path: "c/blobs/tmp-1", Err: syscall.EROFS}, 503},
		{fmt.Errorf("c/raft: %w", files.ErrGone), 503},
		{&fs.PathError{Op: "write", Path: "c/blobs/tmp-1", Err: syscall.ENOSPC}, 507},
		{errors.New("a fault of the program"), 500},
	} {
		if got := statusOf(c.err); got != c.want {
			t.Errorf("%v: status %d, want %d", c.err, got, c.want)
		}
	}
}
