package worker

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/internal/files"
	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/protocol"
)

// Errors about a worker's folder; test with errors.Is.
var (
	// ErrFolder says that the folder is not a worker's, or has another version.
	ErrFolder = errors.New("worker: the folder is not a worker's folder, or has another version")
	// ErrLocked says that another process uses the folder.
	ErrLocked = errors.New("worker: another process uses the folder")
)

// format is the content of FORMAT in a worker's folder.
const format = "coppice worker 2\n"

// freshDisk is the only entry of a new file system.
const freshDisk = "lost+found"

// The names of what is in the folder.
const (
	lockName    = "LOCK"
	shardsName  = "shards"
	resultsName = "results"
)

// folder is a worker's own folder:
//
//	FORMAT   names its kind and version
//	LOCK     locked while a process uses the folder
//	ID       the worker's random name
//	shards/  the cache
//	results/ results of gather rounds, until the leader has them; cleared at the start
type folder struct {
	dir  string
	lock *os.File
	log  *slog.Logger
}

// openFolder opens or makes a worker's folder, and locks it.
func openFolder(dir string, log *slog.Logger) (*folder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("worker: %w", err)
	}
	lock, err := files.Lock(filepath.Join(dir, lockName), 0o600)
	if errors.Is(err, files.ErrLocked) {
		return nil, fmt.Errorf("%w: %s", ErrLocked, dir)
	} else if err != nil {
		return nil, fmt.Errorf("worker: %w", err)
	}
	f := &folder{dir, lock, log}
	if err := f.checkFormat(); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// close unlocks the folder.
func (f *folder) close() { f.lock.Close() }

func (f *folder) path(name string) string { return filepath.Join(f.dir, name) }

// checkFormat reads FORMAT, or writes it if the folder is new. If the folder is a worker's of
// another version, or its FORMAT is damaged, the cache begins empty.
func (f *folder) checkFormat() error {
	b, err := os.ReadFile(f.path("FORMAT"))
	others := len(format) // bytes that differ
	if len(b) == len(format) {
		for i := range b {
			if b[i] == format[i] {
				others--
			}
		}
	}
	switch {
	case err == nil && others == 0:
		return nil
	case err == nil && others == 1:
		f.log.Error("the FORMAT file is damaged or has another version; the worker starts with an empty cache", "file",
			f.path("FORMAT"), "says", string(b))
		if err := errors.Join(os.RemoveAll(f.path(shardsName)), os.RemoveAll(f.path(resultsName))); err != nil {
			return fmt.Errorf("worker: %w", err)
		}
		return f.write("FORMAT", format)
	case err == nil:
		return fmt.Errorf("%w: %s says %q, want %q; empty the folder, which holds only copies, or name another folder",
			ErrFolder, f.path("FORMAT"), b[:min(len(b), 64)], format)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("worker: %w", err)
	}
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	for _, e := range entries {
		if name := e.Name(); name != lockName && name != "FORMAT"+files.Temporary && name != freshDisk {
			return fmt.Errorf("%w: %s has no FORMAT file, but has %s", ErrFolder, f.dir, e.Name())
		}
	}
	return f.write("FORMAT", format)
}

// write writes a small file as a whole or not at all, also if the power fails soon after.
func (f *folder) write(name, text string) error {
	if err := files.Replace(f.path(name), []byte(text), 0o600); err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	return nil
}

// id returns the worker's name: want if it is not empty, then the name in the folder, then last, then
// a random one. last is the name that this process had before. The folder keeps the name unless it
// is want. A name in the folder that does not fit is replaced: it was drawn for another certificate,
// or for none.
func (f *folder) id(want, last string, fits func(string) bool) (string, error) {
	if want != "" {
		return want, nil
	}
	b, err := os.ReadFile(f.path("ID"))
	if err == nil {
		id := strings.TrimSpace(string(b))
		switch {
		case protocol.CheckID(id) == nil && fits(id):
			return id, nil
		case protocol.CheckID(id) == nil:
			f.log.Info("the worker takes another name, because its certificate does not permit the name in its folder",
				"before", id)
		default:
			f.log.Error("the file of the worker's name is damaged; the worker takes another name", "file", f.path("ID"), "says",
				protocol.Brief(id))
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("worker: %w", err)
	}
	id := last
	if id == "" {
		var random [5]byte
		rand.Read(random[:])
		id = "w" + hex.EncodeToString(random[:])
	}
	return id, f.write("ID", id+"\n")
}

// folderEvery is the time between two checks of the folder.
const folderEvery = 250 * time.Millisecond

// folderWatch checks the folder of a worker that runs.
type folderWatch struct {
	places  *files.Places
	blobs   []*blobs.Folder
	changed func()                 // is called when a trouble begins or ends
	why     atomic.Pointer[string] // the trouble; nil: none
}

// watchFolder returns a watch of a folder and of its parts, which are open.
func watchFolder(f *folder, changed func(), parts ...*blobs.Folder) (*folderWatch, error) {
	paths := []string{f.dir, f.path(lockName)}
	for _, b := range parts {
		paths = append(paths, b.Dir())
	}
	places, err := files.Hold(paths...)
	return &folderWatch{places: places, blobs: parts, changed: changed}, err
}

// watch returns an error that wraps files.ErrGone when the folder is deleted, or nil when ctx is
// done.
func (f *folderWatch) watch(ctx context.Context) error {
	for ctx.Err() == nil {
		err := cmp.Or(f.places.Check(), f.places.Writable())
		for _, b := range f.blobs {
			err = cmp.Or(err, b.Fault())
		}
		if errors.Is(err, files.ErrGone) {
			return err
		}
		switch had := f.why.Load() != nil; {
		case err == nil && had:
			f.why.Store(nil)
			f.changed()
		case err != nil && !had: // later reasons do not replace it, because the leader was told
			why := "the worker's folder cannot be written: " + err.Error()
			f.why.Store(&why)
			f.changed()
		}
		wait.For(ctx, folderEvery)
	}
	return nil
}

// trouble says why the folder cannot be written; empty: it can.
func (f *folderWatch) trouble() string {
	if why := f.why.Load(); why != nil {
		return *why
	}
	return ""
}

func (f *folderWatch) close() { f.places.Close() }
