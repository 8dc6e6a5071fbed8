package blobs

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/coppice-ldl/coppice/internal/files"
)

// Fault returns why blobs cannot be written now, or nil. After a write that failed another is
// tried here. A shortage, such as a full disk, is no fault of the folder.
func (f *Folder) Fault() error {
	if err := files.Writable(f.dir); err != nil {
		return fmt.Errorf("blobs: %w", err)
	}
	if f.failed.Load() == nil {
		return nil
	}
	if err := f.try(); err != nil && !shortage(err) {
		return fmt.Errorf("blobs: %w", err)
	}
	f.failed.Store(nil)
	return nil
}

// try writes a file, and removes it.
func (f *Folder) try() error {
	file, err := os.CreateTemp(f.dir, tempPrefix+"*")
	if err != nil {
		return err
	}
	_, err = file.Write([]byte{0})
	if err == nil && f.sync {
		err = f.fsync(file)
	}
	return errors.Join(err, file.Close(), os.Remove(file.Name()))
}

// note takes note of a write that failed, and returns its error.
func (f *Folder) note(err error) error {
	if err != nil && !shortage(err) {
		f.failed.Store(&err)
	}
	return err
}

// shortage reports whether a write failed because something was used up.
func shortage(err error) bool {
	for _, e := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
