package chaos

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/coppice-ldl/coppice/harness/chaos/system"
	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/worker"
)

// mounted gives names a block disk each, to the end of the test.
func mounted(t *testing.T, names ...string) *rig {
	t.Helper()
	if reason := noDisks(); reason != "" {
		t.Skip(reason)
	}
	r := &rig{dir: t.TempDir()}
	t.Cleanup(func() {
		if err := r.unmount(); err != nil {
			t.Error(err)
		}
	})
	if err := r.mount(names); err != nil {
		t.Fatal(err)
	}
	return r
}

// On a disk that is shut down every read, write and sync is an input/output error, also
// through a file that is open; once it is mended it has what was synced.
func TestBlockDisk(t *testing.T) {
	r := mounted(t, "a", "w1")
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
	if err := system.ShutDown(n.Dir); err != nil {
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

// A worker whose power fails soon after its first start takes its folder for its own.
func TestWorkerAfterAPowerCut(t *testing.T) {
	r := mounted(t, "w1")
	n := &proc.Node{Name: "w1", Dir: filepath.Join(r.dir, "w1")}
	for start := range 2 {
		err := workerUntil(t, n.Dir, func() {
			if start > 0 {
				return
			}
			// what syncs it syncs all names, but not what is in the files
			f, err := os.Create(filepath.Join(n.Dir, "shards", "tmp-other"))
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(f.Sync(), f.Close(), system.ShutDown(n.Dir)); err != nil {
				t.Fatal(err)
			}
		})
		if err != nil {
			t.Fatalf("start %d: %v", start+1, err)
		}
		if start == 0 {
			if err := r.mendDisk(n); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// workerUntil runs a worker that finds no coordinator until it says so, and does something
// before it ends.
func workerUntil(t *testing.T, dir string, then func()) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if err := os.Chmod(dir, 0o700); err != nil { // else the first line is about its mode
		t.Fatal(err)
	}
	first, done := &firstLine{came: make(chan struct{})}, make(chan error, 1)
	log := slog.New(slog.NewTextHandler(first, nil))
	go func() { done <- worker.Run(ctx, worker.Config{Join: []string{"127.0.0.1:1"}, Dir: dir, Log: log}) }()
	select {
	case err := <-done:
		return errors.Join(err, errors.New("the worker has ended"))
	case <-first.came:
	}
	then()
	cancel()
	return <-done
}

// firstLine closes a channel when a log has a line.
type firstLine struct {
	once sync.Once
	came chan struct{}
}

func (l *firstLine) Write(b []byte) (int, error) {
	l.once.Do(func() { close(l.came) })
	return len(b), nil
}
