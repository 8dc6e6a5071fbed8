package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// folderFormat is the version of the folder's layout.
const folderFormat = 1

// The names in a folder. The snapshot store makes "snapshots" by itself.
const (
	formatName = "FORMAT"
	lockName   = "LOCK"
	logName    = "log"
)

// folder is a node's folder while this process has it.
type folder struct {
	path string
	lock *os.File
}

// openFolder makes or opens the folder of node id and takes its lock.
func openFolder(path, id string) (*folder, error) {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	lock, err := takeLock(path)
	if err != nil {
		return nil, err
	}
	f := &folder{path: path, lock: lock}
	if err := f.checkFormat(id); err != nil {
		return nil, errors.Join(err, f.close())
	}
	if err := os.MkdirAll(f.log(), 0o755); err != nil {
		return nil, errors.Join(fmt.Errorf("store: %w", err), f.close())
	}
	return f, nil
}

// takeLock locks the folder; the kernel drops the lock with the process, however
// it ends.
func takeLock(path string) (*os.File, error) {
	lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = ErrLocked
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("store: folder %s: %w", path, err), lock.Close())
	}
	return lock, nil
}

func (f *folder) log() string { return filepath.Join(f.path, logName) }

func (f *folder) close() error { return f.lock.Close() }

// checkFormat compares the FORMAT file with what this node writes; a new folder
// gets one.
func (f *folder) checkFormat(id string) error {
	want := fmt.Sprintf("coppice raft folder, format %d, node %s\n", folderFormat, id)
	got, err := os.ReadFile(filepath.Join(f.path, formatName))
	if errors.Is(err, os.ErrNotExist) {
		return f.initialise(want)
	}
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if string(got) != want {
		return fmt.Errorf("store: folder %s is %w: its %s file says %.200q where %q was due", f.path, ErrFolder, formatName, got, want)
	}
	return nil
}

// initialise writes the FORMAT file of an empty folder, whole or not at all.
func (f *folder) initialise(text string) error {
	entries, err := os.ReadDir(f.path)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	temporary := filepath.Join(f.path, formatName+".tmp")
	for _, e := range entries {
		if n := e.Name(); n != lockName && n != filepath.Base(temporary) {
			return fmt.Errorf("store: folder %s is %w: it holds %q but no %s file", f.path, ErrFolder, n, formatName)
		}
	}
	if err := writeSynced(temporary, text); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if err := os.Rename(temporary, filepath.Join(f.path, formatName)); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return syncFolder(f.path)
}

func writeSynced(path, text string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Sync(), file.Close())
}

// syncFolder makes a rename in the folder survive a power cut.
func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}
