package chaos

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/coppice-ldl/coppice/internal/proc"
)

// On a disk that is shut down every read, write and sync is an input/output error, also
// through a file that is open; once it is mended it has what was synced.
func TestBlockDisk(t *testing.T) {
	if reason := noBlockDisks(nil); reason != "" {
		t.Skip(reason)
	}
	r := &rig{dir: t.TempDir()}
	t.Cleanup(func() {
		if err := r.unmount(); err != nil {
			t.Error(err)
		}
	})
	if err := r.mount([]string{"a", "w1"}, true); err != nil {
		t.Fatal(err)
	}
	n := &proc.Node{Name: "a", Dir: filepath.Join(r.dir, "a")}
	f, err := os.Create(filepath.Join(n.Dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, err = f.WriteString("synced")
	if err := errors.Join(err, f.Sync()); err != nil {
		t.Fatal(err)
	}
	if err := shutDown(n.Dir); err != nil {
		t.Fatal(err)
	}
	_, read := f.ReadAt(make([]byte, 1), 0)
	_, wrote := f.WriteString(" and more")
	_, opened := os.ReadFile(f.Name())
	for what, err := range map[string]error{"read": read, "write": wrote, "sync": f.Sync(), "open": opened} {
		if !errors.Is(err, syscall.EIO) {
			t.Errorf("%s: %v", what, err)
		}
	}
	write(t, filepath.Join(r.dir, "w1", "other"), "another disk is well")
	f.Close()
	if err := r.mendDisk(n); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(f.Name()); err != nil || string(b) != "synced" {
		t.Errorf("%q, %v", b, err)
	}
	write(t, f.Name(), "well again")
}
