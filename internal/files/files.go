// Package files writes, locks and watches files and folders that must survive crashes and power cuts.
package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Temporary ends the name of a file that Replace writes. A crash may leave one; the next Replace of the same file overwrites it.
const Temporary = ".tmp"

// Replace writes a file. After a crash or a power cut it has its old contents or b. A file that Replace makes has the mode perm.
func Replace(path string, b []byte, perm fs.FileMode) error {
	temporary := path + Temporary
	err := WriteSynced(temporary, b, perm)
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		_ = os.Remove(temporary) // a full disk needs the room
		return err
	}
	return SyncFolder(filepath.Dir(path))
}

// WriteSynced writes a file and waits until its contents are on the disk.
func WriteSynced(path string, b []byte, perm fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Sync(), f.Close())
}

// SyncFolder waits until the names in a folder are on the disk. Some network file systems cannot do this: then it does
// nothing.
func SyncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		err = nil
	}
	return errors.Join(err, d.Close())
}

// ErrLocked is the error of Lock if another process has the lock.
var ErrLocked = errors.New("another process uses it")

// Lock makes or opens a file and locks it. The kernel drops the lock if the file is closed or the process ends.
func Lock(path string, perm fs.FileMode) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, perm)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = ErrLocked
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Message returns the text of an error. An error about a file names the file, and says what is wrong in plain words.
func Message(err error) string {
	var p *fs.PathError
	if !errors.As(err, &p) {
		return err.Error()
	}
	reason := p.Err.Error()
	switch {
	case errors.Is(p, fs.ErrNotExist):
		reason = "no such file or folder"
	case errors.Is(p, unix.EISDIR):
		reason = "is a folder; give the name of a file"
	case errors.Is(p, unix.ENOTDIR):
		reason = "is not a folder, or is not in a folder"
	}
	return strings.Replace(err.Error(), p.Error(), p.Path+": "+reason, 1)
}
