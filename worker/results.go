package worker

import (
	"bytes"
	"os"
	"sync"

	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

// maxInMemory bounds the results that a worker keeps in memory, in bytes. Making a file
// takes half a millisecond where others sync the same disk, and the leader has most
// results a moment later.
const maxInMemory = 4 << 20

// results keeps the bytes of collected units while somebody uses them: in memory
// while there is room, else in files. Two units may have the same bytes.
type results struct {
	folder *blobs.Folder

	mu    sync.Mutex
	users map[string]int    // by digest
	small map[string][]byte // those in memory
	held  int               // their bytes
}

// openResults opens an empty folder: what an earlier process computed is
// computed again when someone asks.
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

// put keeps a copy of b.
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

// retain counts one more user of a result, or reports false where it is not kept.
func (r *results) retain(digest string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.users[digest] == 0 {
		return false
	}
	r.users[digest]++
	return true
}

// read returns the bytes of a result, verified where they come from a file. Nobody may change them.
func (r *results) read(digest string) ([]byte, error) {
	r.mu.Lock()
	b, ok := r.small[digest]
	r.mu.Unlock()
	if ok {
		return b, nil
	}
	return r.folder.Get(digest)
}

// release gives up one use of a result; with the last one its bytes go.
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
	r.folder.Delete(digest) // else the next start clears it
}

// open finds a result for who asks for it.
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
