package blobs

import (
	"fmt"
	"os"
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
	f.checking.Lock()
	defer f.checking.Unlock()
	return f.verify(digest, path)
}

func (f *Folder) verify(digest, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return missing(digest, err)
	}
	defer file.Close()
	got, size, err := digestOf(file)
	if err != nil {
		return fmt.Errorf("blobs: read %s: %w", path, err)
	}
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
	if err := f.verifyOnce(digest, path); err != nil {
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

// verifyOnce verifies a blob unless this process has before.
func (f *Folder) verifyOnce(digest, path string) error {
	if f.marked(digest) {
		return nil
	}
	f.checking.Lock()
	defer f.checking.Unlock()
	if f.marked(digest) {
		return nil
	}
	return f.verify(digest, path)
}
