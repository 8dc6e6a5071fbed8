package files_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/coppice-ldl/coppice/internal/files"
)

func TestReplace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(path+files.Temporary, []byte("left by a crash, and longer than what follows"),
		0o600); err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{"one", "the second", ""} {
		if err := files.Replace(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil || string(b) != content {
			t.Errorf("%q, %v; want %q", b, err, content)
		}
		if _, err := os.Stat(path + files.Temporary); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the temporary file: %v", err)
		}
	}
	if err := files.Replace(filepath.Join(path, "no folder"), nil, 0o600); err == nil {
		t.Error("a file in a file")
	}
}

// TestReplaceFails: a write that fails leaves the old contents, and no temporary file.
func TestReplaceFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	if err := os.MkdirAll(filepath.Join(path, "b"), 0o700); err != nil { // a folder cannot be replaced by a file
		t.Fatal(err)
	}
	if err := files.Replace(path, []byte("x"), 0o600); err == nil {
		t.Error("a file replaced a folder")
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := os.Stat(path + files.Temporary); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the temporary file: %v", err)
	}
}

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "LOCK")
	lock, err := files.Lock(path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := files.Lock(path, 0o600); !errors.Is(err, files.ErrLocked) {
		t.Errorf("locked twice: %v", err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := files.Lock(path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}

func TestMessage(t *testing.T) {
	dir := t.TempDir()
	_, missing := os.Open(filepath.Join(dir, "none"))
	_, folder := os.ReadFile(dir)
	for want, err := range map[string]error{
		"data: " + filepath.Join(dir, "none") + ": no such file or folder; stop": fmt.Errorf("data: %w; stop", missing),
		dir + ": is a folder; give the name of a file":                           folder,
		"disk full": errors.New("disk full"),
	} {
		if got := files.Message(err); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
