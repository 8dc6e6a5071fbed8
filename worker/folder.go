package worker

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/coppice-ldl/coppice/internal/files"
	"github.com/coppice-ldl/coppice/protocol"
)

// Errors about a worker's folder; test with errors.Is.
var (
	// ErrFolder says that the folder is not a worker's, or of another version.
	ErrFolder = errors.New("worker: the folder is not a worker's folder, or has another version")
	// ErrLocked says that another process uses the folder.
	ErrLocked = errors.New("worker: another process uses the folder")
)

// format is what FORMAT says in a worker's folder.
const format = "coppice worker 2\n"

// freshDisk is what a new file system holds.
const freshDisk = "lost+found"

// The file that is locked, and the folders in the folder.
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
//	COORDINATORS  those of the cluster that it served last (known.go)
//	shards/  the cache
//	results/ bytes of collected units, until the leader has them; cleared at start
type folder struct {
	dir  string
	lock *os.File
	log  *slog.Logger
}

// openFolder opens or makes a worker's folder and locks it.
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

// checkFormat reads FORMAT, or writes it where the folder is new. If the folder is a worker's
// of another version, or its FORMAT is damaged, its cache begins empty.
func (f *folder) checkFormat() error {
	b, err := os.ReadFile(f.path("FORMAT"))
	switch {
	case err == nil && string(b) == format:
		return nil
	case err == nil && nearly(string(b), format):
		f.log.Error("the FORMAT file is damaged or has another version; the worker starts with an empty cache", "file", f.path("FORMAT"), "says", string(b))
		if err := errors.Join(os.RemoveAll(f.path(shardsName)), os.RemoveAll(f.path(resultsName))); err != nil {
			return fmt.Errorf("worker: %w", err)
		}
		return f.write("FORMAT", format)
	case err == nil:
		return fmt.Errorf("%w: %s says %q, want %q; empty the folder, which holds only copies, or name another folder", ErrFolder, f.path("FORMAT"), b[:min(len(b), 64)], format)
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

// nearly reports whether a text differs from want in one byte at most.
func nearly(text, want string) bool {
	if len(text) != len(want) {
		return false
	}
	others := 0
	for i := range len(want) {
		if text[i] != want[i] {
			others++
		}
	}
	return others <= 1
}

// write writes a small file whole or not at all, also where the power fails soon after.
func (f *folder) write(name, text string) error {
	if err := files.Replace(f.path(name), []byte(text), 0o600); err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	return nil
}

// id returns the worker's name: want, or the one in the folder, or last, which is the one
// that this process had before, or a random one. The folder keeps it unless it is want.
func (f *folder) id(want, last string) (string, error) {
	if want != "" {
		return want, nil
	}
	b, err := os.ReadFile(f.path("ID"))
	if err == nil {
		id := strings.TrimSpace(string(b))
		if protocol.CheckID(id) == nil {
			return id, nil
		}
		f.log.Error("the file of the worker's name is damaged; the worker takes another name", "file", f.path("ID"), "says", protocol.Brief(id))
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
