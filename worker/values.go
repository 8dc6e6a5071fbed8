package worker

import (
	"bytes"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/protocol/bus"
	"github.com/coppice-ldl/coppice/worker/batch"
)

// value is the memory of a version of a value: its bytes, or its chunks. jobs.mu guards it, but for
// the bytes, which do not change while a batch reads them.
type value struct {
	data    []byte
	message []byte // the message that data stands in; nil if data has memory of its own

	chunks map[int]*chunk
	list   []round.Chunk // in order; nil until all chunks are here. Batches keep the lists of earlier times.
}

// keepValue makes memory for a version that came whole, unless it has memory of an older one, or of its message.
func keepValue(v *batch.Version) {
	x, ok := v.Local.(*value)
	if !ok {
		x = new(value)
		v.Local = x
	}
	if cap(x.data) < v.Bytes {
		x.data = make([]byte, v.Bytes)
	}
	x.data = x.data[:v.Bytes]
}

// keepChunk adds a chunk. It may replace a chunk that cannot be read any longer.
func keepChunk(v *batch.Version, index int, c *chunk) {
	x, ok := v.Local.(*value)
	if !ok {
		x = &value{chunks: make(map[int]*chunk)}
		v.Local = x
	}
	if old := x.chunks[index]; old != nil {
		old.release()
	}
	x.chunks[index] = c
	c.version, c.index = v, index
	if v.Whole() {
		x.list = make([]round.Chunk, len(x.chunks))
		for i, c := range x.chunks {
			x.list[i] = c
		}
	}
}

// release gives up the message, or the chunks.
func (x *value) release(reuse func(message []byte)) {
	for _, c := range x.chunks {
		c.release()
	}
	if x.message != nil {
		reuse(x.message)
	}
	*x = value{}
}

// chunk is a chunk of a version of a value. It implements round.Chunk.
type chunk struct {
	digest  string
	data    []byte   // the bytes that came in a message
	own     *results // has the bytes, and counts the chunk as a user; nil if they came in a message
	report  func(batch.Event)
	lost    atomic.Bool // true if it was reported that the bytes cannot be read. A later chunk may replace this one.
	version *batch.Version
	index   int
}

// Digest implements round.Chunk.
func (c *chunk) Digest() string { return c.digest }

// Bytes implements round.Chunk. An error is a passing failure, because the leader has the bytes.
func (c *chunk) Bytes() ([]byte, error) {
	if c.own == nil {
		return c.data, nil
	}
	b, err := c.own.read(c.digest)
	if err != nil {
		if !c.lost.Swap(true) {
			c.report(&batch.ChunkLost{Version: c.version, Index: c.index})
		}
		return nil, batch.Passing(fmt.Errorf("worker: the result of an earlier task cannot be read: %w", err))
	}
	return b, nil
}

func (c *chunk) release() {
	if c.own != nil {
		c.own.release(c.digest)
	}
}

// maxInMemory bounds the results in memory, in bytes. To make a file takes half a millisecond while
// others sync the same disk, and the leader fetches most results a moment later.
const maxInMemory = 4 << 20

// results keeps the results of tasks of gather rounds while they have users: in memory while there
// is room, otherwise in files. Two tasks may have the same result. Files are made and deleted without mu, since a disk
// that is busy may take seconds for it: heartbeats would wait.
type results struct {
	folder *blobs.Folder
	files  sync.Mutex // is held while a file is made or deleted; it is taken before mu

	mu       sync.Mutex          // guards what follows
	users    map[string]int      // by digest
	small    map[string][]byte   // by digest; results in memory
	held     int                 // bytes of small, at most maxInMemory
	unused   map[string]struct{} // digests of files without users, which are deleted soon
	deleting bool                // true if a goroutine deletes them
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
	return &results{folder: folder, users: make(map[string]int), small: make(map[string][]byte),
		unused: make(map[string]struct{})}, nil
}

// put keeps a copy of b, and counts one user more.
func (r *results) put(b []byte) (digest string, err error) {
	digest = blobs.Sum(b)
	if r.use(digest, b) {
		return digest, nil
	}
	r.files.Lock()
	defer r.files.Unlock()
	if r.use(digest, b) { // meanwhile, another task had the same result, or there is room in memory
		return digest, nil
	}
	if _, err := r.folder.Put(b); err != nil {
		return "", err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.small[digest]; ok { // meanwhile, another task had the same result, and there was room
		r.held -= len(b)
		delete(r.small, digest)
	}
	r.users[digest]++
	return digest, nil
}

// use counts one user more of a result that is kept, or that fits memory. It reports false if a file must be made.
func (r *results) use(digest string, b []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, unused := r.unused[digest]
	switch {
	case r.users[digest] > 0:
	case unused:
		delete(r.unused, digest)
	case r.held+len(b) <= maxInMemory:
		r.small[digest] = bytes.Clone(b)
		r.held += len(b)
	default:
		return false
	}
	r.users[digest]++
	return true
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

// release counts one user less. Without users the bytes are deleted; another goroutine deletes a file.
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
	r.unused[digest] = struct{}{}
	if !r.deleting {
		r.deleting = true
		go r.deleteUnused()
	}
}

// deleteUnused deletes the files without users.
func (r *results) deleteUnused() {
	for {
		r.files.Lock()
		r.mu.Lock()
		digest := ""
		for digest = range r.unused {
			delete(r.unused, digest)
			break
		}
		r.deleting = digest != ""
		r.mu.Unlock()
		if digest != "" {
			r.folder.Delete(digest) // if it fails, the next start deletes it
		}
		r.files.Unlock()
		if digest == "" {
			return
		}
	}
}

// close ends the deletion of files. The next start deletes the others.
func (r *results) close() {
	r.mu.Lock()
	clear(r.unused)
	r.mu.Unlock()
	r.files.Lock() // waits for a file that is being deleted
	defer r.files.Unlock()
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
