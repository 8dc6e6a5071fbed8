package sim

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/coppice-ldl/coppice/internal/blobs"
)

// disk is a coordinator's blob folder as a power cut sees it: a file is there
// only once its bytes and its name are synced. It outlives the hosts; each life
// has a directory of its own, so that a killed process writes to none that counts.
type disk struct {
	root string // directory of the lives
	name string

	mu    sync.Mutex
	life  int
	bytes map[uint64]bool // inodes whose bytes are synced
	named map[string]bool // names that are synced
}

func newDisk(root, name string) *disk {
	return &disk{root: root, name: name, bytes: make(map[uint64]bool), named: make(map[string]bool)}
}

func (d *disk) dir() string { return filepath.Join(d.root, fmt.Sprintf("%s.%d", d.name, d.life)) }

// open opens the folder for a life.
func (d *disk) open(h *host) (*blobs.Folder, error) {
	d.mu.Lock()
	dir := d.dir()
	d.mu.Unlock()
	if !h.alive() { // else the directory might be the next one's
		return nil, os.ErrClosed
	}
	return blobs.Open(dir, blobs.Syncer(func(f *os.File) error { return d.sync(dir, f) }))
}

// sync is fsync: of a file, or of the folder.
func (d *disk) sync(dir string, f *os.File) error {
	st, err := f.Stat()
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if dir != d.dir() {
		return os.ErrClosed // of an earlier life
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

// crash ends a life: names that were not synced are gone, and of bytes that were
// not, half.
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

// crashWorker ends a worker's life: its files were never synced, so any may be
// lost or cut short. It returns the directory of the next.
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
