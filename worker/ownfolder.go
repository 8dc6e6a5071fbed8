package worker

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/internal/files"
	"github.com/coppice-ldl/coppice/internal/wait"
)

// folderEvery is how often a worker looks at its folder.
const folderEvery = 250 * time.Millisecond

// ownFolder watches the folder of a worker that runs.
type ownFolder struct {
	places  *files.Places
	blobs   []*blobs.Folder
	changed func() // is told when the trouble comes or ends
	why     atomic.Pointer[string]
}

// holdFolder takes hold of a folder whose parts are open.
func holdFolder(f *folder, changed func(), parts ...*blobs.Folder) (*ownFolder, error) {
	paths := []string{f.dir, f.path(lockName)}
	for _, b := range parts {
		paths = append(paths, b.Dir())
	}
	places, err := files.Hold(paths...)
	return &ownFolder{places: places, blobs: parts, changed: changed}, err
}

// watch returns once the folder is not there any longer, with an error that wraps
// files.ErrGone, or once ctx is done, with nil.
func (f *ownFolder) watch(ctx context.Context) error {
	for ctx.Err() == nil {
		err := f.look()
		if errors.Is(err, files.ErrGone) {
			return err
		}
		switch had := f.why.Load() != nil; {
		case err == nil && had:
			f.why.Store(nil)
			f.changed()
		case err != nil && !had: // and one reason stays, whatever follows: it is told to others
			why := "the worker's folder cannot be written: " + err.Error()
			f.why.Store(&why)
			f.changed()
		}
		wait.For(ctx, folderEvery)
	}
	return nil
}

func (f *ownFolder) look() error {
	err := cmp.Or(f.places.Check(), f.places.Writable())
	for _, b := range f.blobs {
		err = cmp.Or(err, b.Fault())
	}
	return err
}

// trouble says why the folder cannot be written just now; empty: it can.
func (f *ownFolder) trouble() string {
	if why := f.why.Load(); why != nil {
		return *why
	}
	return ""
}

func (f *ownFolder) close() { f.places.Close() }
