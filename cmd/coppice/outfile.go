package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// outFile is a file that appears under its name only when it is complete.
type outFile struct {
	*os.File
	path string
}

// createFile begins a file beside its final place, so that a wrong path is found
// before the work is done.
func createFile(path string) (*outFile, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s: is a folder; give the name of a file", path)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: its folder does not exist", path)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: cannot be written: %w", path, err)
	}
	return &outFile{f, path}, nil
}

// commit syncs the file and gives it its name.
func (f *outFile) commit() error {
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
	if f.Close() == nil {
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
