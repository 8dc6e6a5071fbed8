package coordinator

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/coordinator/store"
)

// The cluster's name survives damage to one of its files, and is never guessed
// where both are damaged.
func TestClusterIDIsKept(t *testing.T) {
	cut := func(b []byte) []byte { return b[:5] }
	flip := func(b []byte) []byte { b[2] ^= 1; return b }
	empty := func([]byte) []byte { return nil }
	for _, test := range []struct {
		name         string
		first, other func([]byte) []byte
		kept         bool
	}{
		{"whole", nil, nil, true},
		{"cut short", cut, nil, true},
		{"empty", empty, nil, true},
		{"a bit", flip, nil, true},
		{"a bit of the copy", nil, flip, true},
		{"both", cut, flip, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir, log := t.TempDir(), slog.New(slog.DiscardHandler)
			if id, err := clusterID(dir, log); err != nil || id != "" {
				t.Fatalf("a new folder is of cluster %q: %v", id, err)
			}
			id := store.NewID()
			if err := keepClusterID(dir, id); err != nil {
				t.Fatal(err)
			}
			for name, change := range map[string]func([]byte) []byte{clusterName: test.first, clusterCopy: test.other} {
				if change == nil {
					continue
				}
				path := filepath.Join(dir, name)
				b, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, change(b), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			again, err := clusterID(dir, log)
			if !test.kept {
				if !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), filepath.Join(dir, clusterName)) {
					t.Errorf("%q, %v; want ErrCorrupt that names the file", again, err)
				}
				return
			}
			if err != nil || again != id {
				t.Fatalf("%q, %v; want %q", again, err, id)
			}
			if err := keepClusterID(dir, id); err != nil {
				t.Fatal(err)
			}
			if got, err := readClusterFile(filepath.Join(dir, clusterName)); err != nil || got != id {
				t.Errorf("the file was not mended: %q, %v", got, err)
			}
		})
	}
}

// A probe finds a folder that takes nothing, and leaves nothing behind.
func TestProbe(t *testing.T) {
	dir := t.TempDir()
	if err := probe(dir); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left %v", left)
	}
	if err := probe(filepath.Join(dir, "none")); err == nil {
		t.Error("a folder that does not exist takes files")
	}
}
