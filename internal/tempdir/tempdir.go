// Package tempdir makes temporary files and folders. A folder of a process that was killed is removed when a later
// process makes one.
package tempdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	// prefix begins the names of all temporary files and folders.
	prefix = "coppice-"
	// lockFile is a file of a Folder, which its process has locked for as long as it lives.
	lockFile = ".lock"
	// attempts bounds how often Make begins again after another process removed the new folder.
	attempts = 10
	// unlocked is the age from which a folder without a lock file is a leftover.
	unlocked = 24 * time.Hour
)

// Folder is a temporary folder, which belongs to this process.
type Folder struct {
	Path string
	lock *os.File
}

// Make makes a temporary folder for a purpose, one word, and removes the folders that processes of this user left
// behind.
func Make(purpose string) (*Folder, error) {
	start := prefix + purpose + "-"
	sweep(os.TempDir(), start, time.Now())
	for range attempts {
		path, err := Kept(purpose)
		if err != nil {
			return nil, err
		}
		lock, err := os.OpenFile(filepath.Join(path, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
		if err == nil {
			// Another process may have locked and removed the file first.
			locked := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
			named, statErr := os.Stat(lock.Name())
			open, openErr := lock.Stat()
			if locked && statErr == nil && openErr == nil && os.SameFile(named, open) {
				return &Folder{path, lock}, nil
			}
			lock.Close()
		}
		if err := os.RemoveAll(path); err != nil {
			return nil, explained(err)
		}
	}
	return nil, fmt.Errorf("files in the folder for temporary files cannot be locked (%s); %s", place(), advice)
}

// Remove removes the folder.
func (f *Folder) Remove() error { return errors.Join(os.RemoveAll(f.Path), f.lock.Close()) }

// sweep removes the folders of dir that Make made for this user and that no process has locked. Of those without a lock
// file it removes the old ones whose names begin with start. What cannot be removed stays.
func sweep(dir, start string, now time.Time) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), prefix) {
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue
		}
		if owner, ok := info.Sys().(*syscall.Stat_t); !ok || int(owner.Uid) != os.Getuid() {
			continue
		}
		path := filepath.Join(dir, e.Name())
		lock, err := os.OpenFile(filepath.Join(path, lockFile), os.O_RDWR|syscall.O_NOFOLLOW, 0)
		switch {
		case err == nil:
			if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
				os.RemoveAll(path)
			}
			lock.Close()
		// its process died as it began
		case errors.Is(err, fs.ErrNotExist) && strings.HasPrefix(e.Name(), start) && now.Sub(info.ModTime()) > unlocked:
			os.RemoveAll(path)
		}
	}
}

// Kept makes a temporary folder that stays until somebody removes it.
func Kept(purpose string) (string, error) {
	dir, err := os.MkdirTemp("", prefix+purpose+"-")
	return dir, explained(err)
}

// File makes a temporary file without a name: the system removes it when it is closed, or when the process ends.
func File(purpose string) (*os.File, error) {
	f, err := os.CreateTemp("", prefix+purpose+"-")
	if err != nil {
		return nil, explained(err)
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, explained(err)
	}
	return f, nil
}

const advice = "set TMPDIR to a folder that exists and is writable"

// explained says which folder an error is about, and who chose it.
func explained(err error) error {
	if err == nil {
		return nil
	}
	reason := err
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		reason = p.Err
	}
	if errors.Is(reason, fs.ErrNotExist) {
		reason = errors.New("the folder does not exist")
	}
	// not wrapped: what is missing is nothing that a command was asked for
	return fmt.Errorf("%s: %v; %s", place(), reason, advice)
}

// place names the folder for temporary files.
func place() string {
	if dir := os.Getenv("TMPDIR"); dir != "" {
		return "TMPDIR is " + dir
	}
	return "TMPDIR is not set, so the folder is " + os.TempDir()
}
