package worker

import (
	"os"
	"sync"

	"github.com/coppice-ldl/coppice/internal/blobs"
)

// results keeps the bytes of collected units until their jobs are forgotten.
// Two units may have the same bytes.
type results struct {
	folder *blobs.Folder

	mu    sync.Mutex
	users map[string]int // by digest
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
	return &results{folder: folder, users: make(map[string]int)}, nil
}

func (r *results) put(b []byte) (digest string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if digest = blobs.Sum(b); r.users[digest] == 0 {
		if _, err := r.folder.Put(b); err != nil {
			return "", err
		}
	}
	r.users[digest]++
	return digest, nil
}

func (r *results) release(digest string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.users[digest]--; r.users[digest] > 0 {
		return
	}
	delete(r.users, digest)
	r.folder.Delete(digest) // else the next start clears it
}
