package blobs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A folder that cannot be written says so until a write goes through again; one whose disk
// is full does not.
func TestFault(t *testing.T) {
	var failing error
	f, err := Open(filepath.Join(t.TempDir(), "blobs"), Syncer(func(file *os.File) error {
		if failing != nil {
			return &os.PathError{Op: "sync", Path: file.Name(), Err: failing}
		}
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	put := func() error { _, err := f.Put([]byte("x")); return err }
	if err := errors.Join(put(), f.Fault()); err != nil {
		t.Fatal(err)
	}
	failing = syscall.EIO
	if err := f.Fault(); err != nil {
		t.Errorf("before anything was written: %v", err)
	}
	if err := put(); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	if err := f.Fault(); !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), f.Dir()) {
		t.Errorf("after a write that failed: %v", err)
	}
	failing = nil
	if err := f.Fault(); err != nil {
		t.Errorf("of a disk that is well again: %v", err)
	}
	failing = syscall.ENOSPC
	if err := put(); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if err := f.Fault(); err != nil {
		t.Errorf("of a full disk: %v", err)
	}
	failing = nil
	if err := os.RemoveAll(f.Dir()); err != nil {
		t.Fatal(err)
	}
	if err := f.Fault(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("of a deleted folder: %v", err)
	}
	if err := os.Mkdir(f.Dir(), 0o700); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(f.Dir()); f.Fault() != nil || err != nil || len(left) != 0 {
		t.Errorf("it left %v", left)
	}
}
