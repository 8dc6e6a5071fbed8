package blobs

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"os"
	"path/filepath"
)

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

// Digest returns the digest of the bytes written.
func (w *Writer) Digest() string { return hex.EncodeToString(w.sum.Sum(nil)) }

// Commit ends the blob, names it by its digest and returns that. Where want is
// not empty and is not the digest, nothing is stored and the error is ErrCorrupt.
// When it returns nil the blob is on the disk (unless opened with NoSync).
func (w *Writer) Commit(want string) (digest string, err error) {
	if w.file == nil {
		panic("blobs: Commit after Commit or Close")
	}
	defer w.Close()
	digest = w.Digest()
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
		if err := f.syncDir(); err != nil {
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

// syncDir makes renames in the folder durable.
func (f *Folder) syncDir() error {
	d, err := os.Open(f.dir)
	if err != nil {
		return err
	}
	return errors.Join(f.fsync(d), d.Close())
}
