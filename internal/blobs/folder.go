// Package blobs keeps bytes in a folder, named by their SHA-256: a coordinator's
// synced to the disk, a worker's cache without.
//
// A blob appears under its name whole or not at all: bytes go to a temporary
// file, are synced, and renamed. A file that does not have the digest it is named
// by is moved aside (name.corrupt) when that is found, and is then missing.
package blobs

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coppice-ldl/coppice/internal/digests"
	"github.com/coppice-ldl/coppice/internal/files"
)

// Errors of this package; test with errors.Is.
var (
	// ErrDigest says that a text is not a digest: 64 lower-case hex digits.
	ErrDigest = errors.New("blobs: the name is not a SHA-256 digest")
	// ErrMissing says that the folder does not have a blob.
	ErrMissing = errors.New("blobs: the blob does not exist")
	// ErrCorrupt says that a file or a stream has not the digest it should have.
	ErrCorrupt = errors.New("blobs: the bytes do not match the digest")
	// ErrHeld says that a blob is not deleted because somebody holds it.
	ErrHeld = errors.New("blobs: the blob is in use")
)

const (
	tempPrefix    = "tmp-"
	corruptSuffix = ".corrupt"
	folderMode    = 0o700
)

// Option changes how a folder works.
type Option func(*Folder)

// NoSync leaves it to the system when bytes reach the disk: for a cache.
func NoSync() Option { return func(f *Folder) { f.sync = false } }

// Syncer has f called in place of fsync, with each file before it gets its name
// and with the folder afterwards: for simulated disks.
func Syncer(f func(*os.File) error) Option { return func(o *Folder) { o.fsync = f } }

// Folder is a folder of blobs. All methods may be called concurrently; one
// process at a time may have a folder open.
type Folder struct {
	dir   string
	sync  bool
	fsync func(*os.File) error

	mu       sync.Mutex
	verified digests.Set            // read and found right by this process
	held     map[digests.Digest]int // how often each blob is held
	checking sync.Mutex             // one file at a time is read to verify it
	usage    usage
	names    names
	failed   atomic.Pointer[error] // the last write that failed; nil: none since one went through
}

// Open opens a folder, making it where it does not exist, and removes what a
// crash left unfinished in it.
func Open(dir string, opts ...Option) (*Folder, error) {
	f := &Folder{dir: dir, sync: true, fsync: (*os.File).Sync, verified: make(digests.Set)}
	for _, o := range opts {
		o(f)
	}
	if err := os.MkdirAll(dir, folderMode); err != nil {
		return nil, fmt.Errorf("blobs: %w", err)
	}
	// A crash left the temporary files unfinished.
	left, err := filepath.Glob(filepath.Join(dir, tempPrefix+"*"))
	for _, path := range left {
		err = errors.Join(err, os.Remove(path))
	}
	if err != nil {
		return nil, fmt.Errorf("blobs: unfinished files in %s cannot be deleted: %w", dir, err)
	}
	return f, nil
}

// Remake makes the folder where somebody removed it; its parent must be there.
func (f *Folder) Remake() error {
	if err := os.Mkdir(f.dir, folderMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("blobs: %w", err)
	}
	return nil
}

// Valid reports whether a text is a digest.
func Valid(text string) bool {
	_, ok := digests.Parse(text)
	return ok
}

// Sum returns the digest of bytes.
func Sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// Dir returns the folder's path.
func (f *Folder) Dir() string { return f.dir }

// Path returns the path of a blob's file, whether it exists or not.
func (f *Folder) Path(digest string) (string, error) {
	if !Valid(digest) {
		return "", fmt.Errorf("%w: %.80q", ErrDigest, digest)
	}
	return filepath.Join(f.dir, digest), nil
}

// Size returns a blob's size in bytes, or ErrMissing.
func (f *Folder) Size(digest string) (int64, error) {
	path, err := f.Path(digest)
	if err != nil {
		return 0, err
	}
	st, err := os.Stat(path)
	if err != nil {
		return 0, missing(digest, err)
	}
	return st.Size(), nil
}

// Has reports whether there is a file for a blob; Verify tells whether it is
// right.
func (f *Folder) Has(digest string) bool {
	_, err := f.Size(digest)
	return err == nil
}

// List returns the digests of all blobs in ascending order.
func (f *Folder) List() (all []string, err error) {
	err = f.Each(func(d digests.Digest) { all = append(all, d.String()) })
	slices.Sort(all)
	return all, err
}

// entriesAtOnce is how many entries of the folder are in memory at a time.
const entriesAtOnce = 1024

// Each calls do for each blob, in no order.
func (f *Folder) Each(do func(d digests.Digest)) error {
	dir, err := os.Open(f.dir)
	if err != nil {
		return fmt.Errorf("blobs: %w", err)
	}
	defer dir.Close()
	for {
		entries, err := dir.ReadDir(entriesAtOnce)
		for _, e := range entries {
			if d, ok := digests.Parse(e.Name()); ok && e.Type().IsRegular() {
				do(d)
			}
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return fmt.Errorf("blobs: %w", err)
		}
	}
}

// Delete removes a blob; one that is not there is no error, one that is held is
// ErrHeld.
func (f *Folder) Delete(digest string) error {
	path, err := f.Path(digest)
	if err != nil {
		return err
	}
	d, _ := digests.Parse(digest)
	f.mu.Lock()
	held := f.held[d] > 0
	f.mu.Unlock()
	if held {
		return fmt.Errorf("%w: %s", ErrHeld, digest)
	}
	f.mark(digest, false)
	if err := f.change(path, func() error { return os.Remove(path) }); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("blobs: %w", err)
	}
	return nil
}

// Renew makes a blob as young as one that has just been put.
func (f *Folder) Renew(digest string) error {
	path, err := f.Path(digest)
	if err != nil {
		return err
	}
	if err := os.Chtimes(path, time.Time{}, time.Now()); err != nil {
		return missing(digest, err)
	}
	return nil
}

// Hold keeps blobs, whether they are there yet or not, from being deleted until
// release is called: Delete returns ErrHeld. Holds of the same blob add up.
func (f *Folder) Hold(blobs digests.Set) (release func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held == nil {
		f.held = make(map[digests.Digest]int)
	}
	var mine []digests.Digest
	for d := range blobs {
		f.held[d]++
		mine = append(mine, d)
	}
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, d := range mine {
			if f.held[d]--; f.held[d] <= 0 {
				delete(f.held, d)
			}
		}
		mine = nil
	}
}

// mark remembers whether this process found a blob right.
func (f *Folder) mark(text string, right bool) {
	d, ok := digests.Parse(text)
	if !ok {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if right {
		f.verified[d] = struct{}{}
	} else {
		delete(f.verified, d)
	}
}

// missing turns an error of opening a blob's file into ErrMissing where it is.
func missing(digest string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s", ErrMissing, digest)
	}
	return fmt.Errorf("blobs: %w", err)
}

// Fault returns why blobs cannot be written now, or nil. After a write that failed another is
// tried here. A shortage, such as a full disk, is no fault of the folder.
func (f *Folder) Fault() error {
	if err := files.Writable(f.dir); err != nil {
		return fmt.Errorf("blobs: %w", err)
	}
	if f.failed.Load() == nil {
		return nil
	}
	file, err := os.CreateTemp(f.dir, tempPrefix+"*")
	if err == nil {
		_, err = file.Write([]byte{0})
		if err == nil && f.sync {
			err = f.fsync(file)
		}
		err = errors.Join(err, file.Close(), os.Remove(file.Name()))
	}
	if err != nil && !shortage(err) {
		return fmt.Errorf("blobs: %w", err)
	}
	f.failed.Store(nil)
	return nil
}

// note takes note of a write that failed, and returns its error.
func (f *Folder) note(err error) error {
	if err != nil && !shortage(err) {
		f.failed.Store(&err)
	}
	return err
}

// shortage reports whether a write failed because something was used up.
func shortage(err error) bool {
	for _, e := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// Space returns how many bytes of the disk that dir is on this process can still
// write, and its size in bytes; zeros where the file system does not count.
func Space(dir string) (free, size uint64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, 0, fmt.Errorf("blobs: the free space of %s cannot be read: %w", dir, err)
	}
	block := uint64(st.Bsize)
	return uint64(st.Bavail) * block, uint64(st.Blocks) * block, nil
}

// FreeShare returns the share of a disk that is free to this process, from 0 to
// 1: of the disk that dir is on.
func FreeShare(dir string) (float64, error) {
	free, size, err := Space(dir)
	if err != nil {
		return 0, err
	}
	if size == 0 { // a file system that does not count
		return 1, nil
	}
	return float64(free) / float64(size), nil
}
