package blobs

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
)

// Blob is an open blob.
type Blob struct {
	*os.File
	size int64
}

// Size returns its size in bytes.
func (b *Blob) Size() int64 { return b.size }

// Get returns a blob's bytes, verified. A file with other bytes is moved aside
// and reported as ErrCorrupt; no file is ErrMissing.
func (f *Folder) Get(digest string) ([]byte, error) {
	path, err := f.Path(digest)
	if err != nil {
		return nil, err
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, missing(digest, err)
	}
	if got := Sum(b); got != digest {
		return nil, f.aside(digest, path, got, int64(len(b)))
	}
	f.mark(digest, true)
	return b, nil
}

// Verify reads a blob and returns ErrCorrupt, having moved the file aside, where
// its bytes are not those of the digest, or ErrMissing.
func (f *Folder) Verify(digest string) error {
	path, err := f.Path(digest)
	if err != nil {
		return err
	}
	return f.verify(digest, path, true)
}

// verify is Verify. Unless again is true, it does not read a blob that this process found right before.
func (f *Folder) verify(digest, path string, again bool) error {
	right := func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return !again && f.verified.Has(digest)
	}
	if right() {
		return nil
	}
	f.checking.Lock()
	defer f.checking.Unlock()
	if right() {
		return nil
	}
	file, err := os.Open(path)
	if err != nil {
		return missing(digest, err)
	}
	defer file.Close()
	sum := sha256.New()
	size, err := io.Copy(sum, file)
	if err != nil {
		return fmt.Errorf("blobs: read %s: %w", path, err)
	}
	got := hex.EncodeToString(sum.Sum(nil))
	if got != digest {
		return f.aside(digest, path, got, size)
	}
	f.mark(digest, true)
	return nil
}

// OpenBlob opens a blob to read any part of it. The first time in this process
// it is verified, as by Verify. The caller closes it.
func (f *Folder) OpenBlob(digest string) (*Blob, error) {
	path, err := f.Path(digest)
	if err != nil {
		return nil, err
	}
	if err := f.verify(digest, path, false); err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		f.mark(digest, false)
		return nil, missing(digest, err)
	}
	st, err := file.Stat()
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("blobs: %w", err)
	}
	return &Blob{file, st.Size()}, nil
}

// aside moves a corrupt file out of the way and returns the error that says so.
func (f *Folder) aside(digest, path, got string, size int64) error {
	f.mark(digest, false)
	err := fmt.Errorf("%w: %s has %d bytes with digest %s", ErrCorrupt, path, size, got)
	if rename := f.change(path, func() error { return os.Rename(path, path+corruptSuffix) }); rename != nil {
		return errors.Join(err, rename)
	}
	return fmt.Errorf("%w; moved to %s", err, filepath.Base(path)+corruptSuffix)
}

// Put stores bytes and returns their digest. When it returns they are on the
// disk (unless the folder was opened with NoSync).
func (f *Folder) Put(b []byte) (digest string, err error) {
	w, err := f.Writer()
	if err != nil {
		return "", err
	}
	defer w.Close()
	if _, err := w.Write(b); err != nil {
		return "", err
	}
	return w.Commit("")
}

// Writer stores a blob as its bytes come.
type Writer struct {
	folder *Folder
	file   *os.File // nil when committed or closed
	sum    hash.Hash
	size   int64
}

// Writer begins a blob. The caller closes it, whether it commits or not.
func (f *Folder) Writer() (*Writer, error) {
	file, err := os.CreateTemp(f.dir, tempPrefix+"*")
	if err != nil {
		return nil, fmt.Errorf("blobs: %w", f.note(err))
	}
	return &Writer{folder: f, file: file, sum: sha256.New()}, nil
}

// Write appends to the blob.
func (w *Writer) Write(b []byte) (int, error) {
	if w.file == nil {
		panic("blobs: Write after Commit or Close")
	}
	n, err := w.file.Write(b)
	w.sum.Write(b[:n])
	w.size += int64(n)
	if err != nil {
		err = fmt.Errorf("blobs: %w", w.folder.note(err))
	}
	return n, err
}

// Size returns the number of bytes written.
func (w *Writer) Size() int64 { return w.size }

// Commit ends the blob, names it by its digest and returns that. Where want is
// not empty and is not the digest, nothing is stored and the error is ErrCorrupt.
// When it returns nil the blob is on the disk (unless opened with NoSync).
func (w *Writer) Commit(want string) (digest string, err error) {
	if w.file == nil {
		panic("blobs: Commit after Commit or Close")
	}
	defer w.Close()
	digest = hex.EncodeToString(w.sum.Sum(nil))
	if want != "" && want != digest {
		return "", fmt.Errorf("%w: the %d bytes received for blob %s have the digest %s", ErrCorrupt, w.size, want, digest)
	}
	if err := w.store(digest); err != nil {
		return "", fmt.Errorf("blobs: store %s: %w", digest, w.folder.note(err))
	}
	return digest, nil
}

// store gives the temporary file its name.
func (w *Writer) store(digest string) error {
	f := w.folder
	if f.sync {
		if err := f.fsync(w.file); err != nil {
			return err
		}
	}
	temp := w.file.Name()
	if err := w.file.Close(); err != nil {
		return err
	}
	path := filepath.Join(f.dir, digest)
	if err := f.change(path, func() error { return os.Rename(temp, path) }); err != nil {
		return err
	}
	w.file = nil
	if f.sync {
		dir, err := os.Open(f.dir)
		if err != nil {
			return err
		}
		if err := errors.Join(f.fsync(dir), dir.Close()); err != nil {
			return err
		}
	}
	f.mark(digest, true)
	return nil
}

// Close drops a blob that was not committed. Further calls do nothing.
func (w *Writer) Close() error {
	if w.file == nil {
		return nil
	}
	temp := w.file.Name()
	w.file.Close() // closed already where Commit failed after that
	w.file = nil
	if err := os.Remove(temp); err != nil {
		return fmt.Errorf("blobs: %w", err)
	}
	return nil
}
