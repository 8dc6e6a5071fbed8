package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

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
