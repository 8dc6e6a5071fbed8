// Package files writes, locks and watches files and folders that must survive crashes and power cuts.
package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Temporary ends the name of a file that Replace writes. A crash may leave one; the next Replace of the same file
// overwrites it.
const Temporary = ".tmp"

// Replace writes a file. After a crash or a power cut it has its old contents or b. A file that Replace makes has the
// mode perm.
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

// ErrGone says that a path does not name what was opened there. Other errors say that
// nobody can tell.
var ErrGone = errors.New("it was deleted or moved, or its volume was unmounted")

// Check returns nil if path names the open file or folder that info describes; where info
// is nil, if it names any.
func Check(path string, info fs.FileInfo) error {
	now, err := os.Stat(path)
	switch {
	case err == nil && (info == nil || os.SameFile(now, info)):
		return nil
	case err == nil:
		return fmt.Errorf("%s is not the file or folder that this process opened: %w", path, ErrGone)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ESTALE):
		return fmt.Errorf("%s does not exist any more: %w", path, ErrGone)
	}
	return err
}

// Places are files and folders that are held open, so that nothing else gets their inodes.
type Places struct{ open []*os.File }

// Hold opens files and folders.
func Hold(paths ...string) (*Places, error) {
	p := &Places{}
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			return nil, errors.Join(err, p.Close())
		}
		p.open = append(p.open, f)
	}
	return p, nil
}

// Check returns nil if every path names what was opened there.
func (p *Places) Check() error {
	for _, f := range p.open {
		info, err := f.Stat()
		if err == nil {
			err = Check(f.Name(), info)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Writable returns nil if this process may write to every path. It writes nothing: that a
// disk is full or fails is not found.
func (p *Places) Writable() error {
	for _, f := range p.open {
		if err := Writable(f.Name()); err != nil {
			return err
		}
	}
	return nil
}

// Close closes what is held.
func (p *Places) Close() error {
	var errs []error
	for _, f := range p.open {
		errs = append(errs, f.Close())
	}
	p.open = nil
	return errors.Join(errs...)
}

// Writable returns nil if this process may write to a file or folder.
func Writable(path string) error {
	if err := unix.Access(path, unix.W_OK); err != nil {
		return &fs.PathError{Op: "write", Path: path, Err: err}
	}
	return nil
}

// Free returns the bytes that are free on the disk of dir, or false if the file system does not count them.
func Free(dir string) (int64, bool) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil || st.Blocks == 0 {
		return 0, false
	}
	return int64(st.Bavail) * int64(st.Bsize), true
}

// CheckSpace returns an error if the disk of dir has less than size bytes free.
func CheckSpace(dir string, size int64) error {
	if free, counted := Free(dir); counted && free < size {
		return fmt.Errorf("%s: temporary files need %d MiB, but only %d MiB are free; give another folder in TMPDIR", dir,
			(size+1<<20-1)>>20, free>>20)
	}
	return nil
}
