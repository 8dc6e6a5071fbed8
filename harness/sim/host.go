package sim

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/coppice-ldl/coppice/internal/blobs"
)

// host is one life of a process as the network, the log and the disk see it. What a
// killed process still does reaches none of them.
type host struct {
	name string
	dead chan struct{} // closed by kill

	mu     sync.Mutex
	frozen chan struct{} // closed by thaw; nil: the process runs
}

func newHost(name string) *host { return &host{name: name, dead: make(chan struct{})} }

// pass waits while the process is frozen, and reports whether it still lives.
func (h *host) pass() bool {
	h.mu.Lock()
	frozen := h.frozen
	h.mu.Unlock()
	if frozen != nil {
		select {
		case <-frozen:
		case <-h.dead:
		}
	}
	return h.alive()
}

func (h *host) alive() bool {
	select {
	case <-h.dead:
		return false
	default:
		return true
	}
}

// running reports whether the process lives and is not frozen.
func (h *host) running() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.frozen == nil && h.alive()
}

func (h *host) freeze() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.frozen == nil {
		h.frozen = make(chan struct{})
	}
}

func (h *host) thaw() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.frozen != nil {
		close(h.frozen)
		h.frozen = nil
	}
}

func (h *host) kill() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.alive() {
		close(h.dead)
	}
}

// disk is the blob folder of a coordinator as a power cut leaves it. A file exists only
// once its bytes and its name are synced. It outlives the hosts. Each life has a
// directory of its own, so that a killed process writes to none that counts.
type disk struct {
	root string // the directory of the lives
	name string

	mu    sync.Mutex // guards the fields below
	life  int
	bytes map[uint64]bool // inodes with synced bytes
	named map[string]bool // names that are synced
}

func newDisk(root, name string) *disk {
	return &disk{root: root, name: name, bytes: make(map[uint64]bool), named: make(map[string]bool)}
}

// dir returns the directory of the present life; the lock is held.
func (d *disk) dir() string { return filepath.Join(d.root, fmt.Sprintf("%s.%d", d.name, d.life)) }

// open opens the folder for a life.
func (d *disk) open(h *host) (*blobs.Folder, error) {
	d.mu.Lock()
	dir := d.dir()
	d.mu.Unlock()
	if !h.alive() { // the directory may belong to the next life
		return nil, os.ErrClosed
	}
	return blobs.Open(dir, blobs.Syncer(func(f *os.File) error { return d.sync(dir, f) }))
}

// sync is the fsync of a file in the directory dir, or of dir itself.
func (d *disk) sync(dir string, f *os.File) error {
	st, err := f.Stat()
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if dir != d.dir() { // it is the directory of an earlier life
		return os.ErrClosed
	}
	if !st.IsDir() {
		d.bytes[inode(st)] = true
		return nil
	}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		d.named[e.Name()] = true
	}
	return err
}

func inode(st os.FileInfo) uint64 { return st.Sys().(*syscall.Stat_t).Ino }

// durable reports whether a blob would survive a power cut.
func (d *disk) durable(digest string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.named[digest] {
		return false
	}
	st, err := os.Stat(filepath.Join(d.dir(), digest))
	return err == nil && d.bytes[inode(st)]
}

// read returns the bytes of a blob.
func (d *disk) read(digest string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return os.ReadFile(filepath.Join(d.dir(), digest))
}

// crash ends a life. Names that were not synced are lost, and so is half of the bytes
// that were not.
func (d *disk) crash() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	old := d.dir()
	d.life++
	if err := os.Rename(old, d.dir()); err != nil {
		return err
	}
	entries, err := os.ReadDir(d.dir())
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(d.dir(), e.Name())
		st, err := e.Info()
		switch {
		case err != nil:
			return err
		case !d.named[e.Name()]:
			err = os.Remove(path)
		case !d.bytes[inode(st)]:
			err = os.Truncate(path, st.Size()/2)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// crashWorker ends the life of a worker in dir, and makes the directory of the next. The
// files of a worker were never synced, so any of them may be lost or cut short.
func crashWorker(dir, next string, d *dice) error {
	if err := os.Rename(dir, next); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(next, "LOCK")); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(next, "*", "*"))
	if err != nil {
		return err
	}
	for _, path := range files {
		switch d.n(4) {
		case 0:
			err = os.Remove(path)
		case 1:
			err = os.Truncate(path, 7)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
