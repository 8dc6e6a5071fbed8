package coordinator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/internal/files"
	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/protocol"
)

// folderEvery is how often a coordinator looks whether its folder is still there.
const folderEvery = 250 * time.Millisecond

// ownFolder is the folder of a coordinator that runs. The store looks after the files in
// "raft", and copies after the blobs: their folder is made again if it was deleted.
type ownFolder struct {
	places *files.Places
	blobs  *blobs.Folder
}

// holdFolder takes hold of a folder whose parts are open.
func holdFolder(dir string, blobs *blobs.Folder) (*ownFolder, error) {
	places, err := files.Hold(dir, filepath.Join(dir, "raft"))
	if err != nil {
		return nil, fmt.Errorf("the coordinator's folder cannot be used: %w", err)
	}
	return &ownFolder{places, blobs}, nil
}

// watch returns once the folder is not there any longer, with an error that wraps
// files.ErrGone, or once ctx is done, with nil.
func (f *ownFolder) watch(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := f.places.Check(); errors.Is(err, files.ErrGone) {
			return err
		}
		wait.For(ctx, folderEvery)
	}
	return nil
}

// fault returns why this process cannot write to its folder just now, or nil.
func (f *ownFolder) fault() error {
	return cmp.Or(f.places.Check(), f.places.Writable(), f.blobs.Fault())
}

func (f *ownFolder) close() { f.places.Close() }

// lostFolder adds to an error that wraps files.ErrGone what to do; members are all
// coordinators, as far as this one knows. It returns any other error as it is.
func (c *Config) lostFolder(err error, members []protocol.MemberEntry) error {
	if !errors.Is(err, files.ErrGone) {
		return err
	}
	remedy := "restore a backup: coppice restore FILE --dir " + c.Dir
	switch {
	case len(members) > 1 && (len(c.Peers) > 1 || len(c.Join) > 0):
		remedy = "start this coordinator again with the same flags: it fetches its data from the other coordinators"
	case len(members) > 1:
		var peers []string
		for _, m := range members {
			peers = append(peers, m.ID+"="+m.HTTP)
		}
		remedy = fmt.Sprintf("start this coordinator again with --peers %s: it fetches its data from the other coordinators", strings.Join(peers, ","))
	}
	return fmt.Errorf("the coordinator's folder is lost: %w; the coordinator accepts no data any more; bring the folder back, or %s", err, remedy)
}
