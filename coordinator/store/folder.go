package store

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"

	"golang.org/x/sys/unix"
)

// folderFormat is the version of the folder's layout.
const folderFormat = 2

// The names in a folder. The snapshot store makes "snapshots" by itself.
const (
	formatName = "FORMAT"
	lockName   = "LOCK"
	logName    = "log"
)

// folder is a node's folder while this process has it.
type folder struct {
	path   string
	lock   *os.File
	stable *stable
}

// openFolder makes or opens the folder of node id and takes its lock.
func openFolder(path, id string, log *slog.Logger) (*folder, error) {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	lock, err := takeLock(path)
	if err != nil {
		return nil, err
	}
	f := &folder{path: path, lock: lock}
	if err := f.checkFormat(id, log); err != nil {
		return nil, errors.Join(err, f.close())
	}
	if err := os.MkdirAll(f.log(), 0o755); err != nil {
		return nil, errors.Join(fmt.Errorf("store: %w", err), f.close())
	}
	// A power cut must not leave FORMAT and VOTE without the log: it would look new.
	if err := errors.Join(syncFolder(path), syncFolder(filepath.Dir(path))); err != nil {
		return nil, errors.Join(err, f.close())
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

func (f *folder) meta() string { return filepath.Join(f.log(), metaName) }

// recover is the file that says that the node must catch up before it votes.
func (f *folder) recover() string { return filepath.Join(f.path, "RECOVER") }

func (f *folder) close() error {
	if f.stable != nil {
		return errors.Join(f.stable.close(), f.lock.Close())
	}
	return f.lock.Close()
}

// checkFormat compares the FORMAT file with what this node writes; a new folder
// gets one, and the file of its votes before.
func (f *folder) checkFormat(id string, log *slog.Logger) (err error) {
	want := fmt.Sprintf("coppice raft folder, format %d, node %s\n", folderFormat, id)
	got, err := os.ReadFile(filepath.Join(f.path, formatName))
	if errors.Is(err, os.ErrNotExist) {
		return f.initialise(id, want)
	}
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	damaged := !formatted.Match(got)
	if string(got) == want || damaged {
		if f.stable, err = openStable(f.path, id, false); err != nil {
			return err
		}
	}
	if damaged { // the votes bear the node's name
		log.Error("a file was corrupt and is written again", "error", corrupted(filepath.Join(f.path, formatName), fmt.Errorf("it says %.100q", got)))
		return replaceFile(filepath.Join(f.path, formatName), want)
	}
	if string(got) != want {
		return fmt.Errorf("store: folder %s is %w: its %s file says %.200q where %q was due", f.path, ErrFolder, formatName, got, want)
	}
	return nil
}

// formatted matches the FORMAT file of any version and node.
var formatted = regexp.MustCompile(`^coppice raft folder, format [0-9]+, node .+\n$`)

// initialise writes the FORMAT file of an empty folder, whole or not at all.
func (f *folder) initialise(id, text string) error {
	entries, err := os.ReadDir(f.path)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	temporary := filepath.Join(f.path, formatName+".tmp")
	for _, e := range entries {
		if n := e.Name(); n != lockName && n != filepath.Base(temporary) && n != stableName+".tmp" && n != stableName {
			return fmt.Errorf("store: folder %s is %w: it holds %q but no %s file", f.path, ErrFolder, n, formatName)
		}
	}
	if f.stable, err = openStable(f.path, id, true); err != nil {
		return err
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
