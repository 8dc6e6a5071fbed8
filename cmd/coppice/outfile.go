package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// outFile is a file that appears under its name only when it is complete; a
// device or pipe, which cannot, is written as it is.
type outFile struct {
	*os.File
	path   string
	direct bool
}

// createFile begins a file beside its final place, so that a wrong path is found
// before the work is done.
func createFile(path string) (*outFile, error) {
	switch info, err := os.Stat(path); {
	case err != nil:
	case info.IsDir():
		return nil, fmt.Errorf("%s: is a folder; give the name of a file", path)
	case !info.Mode().IsRegular():
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		return &outFile{f, path, true}, err
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: its folder does not exist", path)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: cannot be written: %w", path, err)
	}
	return &outFile{f, path, false}, nil
}

// commit syncs the file and gives it its name.
func (f *outFile) commit() error {
	if f.direct {
		return f.Close()
	}
	err := errors.Join(f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), f.path)
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("%s: cannot be written: %w", f.path, err)
	}
	return nil
}

// discard removes what was written; after commit it does nothing.
func (f *outFile) discard() {
	if f.Close() == nil && !f.direct {
		os.Remove(f.Name())
	}
}

// writeFile writes a whole file, or nothing.
func writeFile(path string, b []byte) error {
	f, err := createFile(path)
	if err != nil {
		return err
	}
	defer f.discard()
	if _, err := f.Write(b); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return f.commit()
}
