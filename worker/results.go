package worker

import (
	"bytes"
	"os"
	"sync"

	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

// maxInMemory bounds the results in memory, in bytes. To make a file takes half a millisecond while
// others sync the same disk, and the leader fetches most results a moment later.
const maxInMemory = 4 << 20

// results keeps the results of tasks of gather rounds while they have users: in memory while there
// is room, otherwise in files. Two tasks may have the same result.
type results struct {
	folder *blobs.Folder

	mu    sync.Mutex        // guards what follows
	users map[string]int    // by digest
	small map[string][]byte // by digest; results in memory
	held  int               // bytes of small, at most maxInMemory
}

// openResults opens an empty folder. Results of an earlier process are computed again if they are
// asked for.
func openResults(dir string) (*results, error) {
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	folder, err := blobs.Open(dir, blobs.NoSync())
	if err != nil {
		return nil, err
	}
	return &results{folder: folder, users: make(map[string]int), small: make(map[string][]byte)}, nil
}

// put keeps a copy of b, and counts one user more.
func (r *results) put(b []byte) (digest string, err error) {
	digest = blobs.Sum(b)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.users[digest] > 0:
	case r.held+len(b) <= maxInMemory:
		r.small[digest] = bytes.Clone(b)
		r.held += len(b)
	default:
		if _, err := r.folder.Put(b); err != nil {
			return "", err
		}
	}
	r.users[digest]++
	return digest, nil
}

// retain counts one user more, or reports false if the result is not kept.
func (r *results) retain(digest string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.users[digest] == 0 {
		return false
	}
	r.users[digest]++
	return true
}

// read returns the bytes of a result, which the caller must not change. Bytes from a file are
// verified.
func (r *results) read(digest string) ([]byte, error) {
	r.mu.Lock()
	b, ok := r.small[digest]
	r.mu.Unlock()
	if ok {
		return b, nil
	}
	return r.folder.Get(digest)
}

// release counts one user less. Without users the bytes are deleted.
func (r *results) release(digest string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.users[digest]--; r.users[digest] > 0 {
		return
	}
	delete(r.users, digest)
	if b, ok := r.small[digest]; ok {
		r.held -= len(b)
		delete(r.small, digest)
		return
	}
	r.folder.Delete(digest) // if it fails, the next start deletes it
}

// open opens a result that another process asks for.
func (r *results) open(digest string) (bus.Blob, error) {
	r.mu.Lock()
	b, ok := r.small[digest]
	r.mu.Unlock()
	if ok {
		return inMemory{bytes.NewReader(b)}, nil
	}
	return r.folder.OpenBlob(digest)
}

// inMemory is a bus.Blob of bytes.
type inMemory struct{ *bytes.Reader }

// Close implements bus.Blob.
func (inMemory) Close() error { return nil }
