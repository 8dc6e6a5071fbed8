package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/metrics"
	"github.com/coppice-ldl/coppice/worker/batch"
)

// fetcher pulls a blob of a size into w. If it returns an error, the bytes must not be used.
type fetcher func(ctx context.Context, digest string, size int64, w io.Writer) error

// cache keeps shards as files named by their SHA-256, and maps shards in use into memory. It trusts
// a file only after this process has verified its digest. Beyond limit bytes it evicts the shard
// that was unused for longest.
type cache struct {
	cacheOptions
	folder *blobs.Folder

	mu      sync.Mutex        // guards what follows, and the fields of entries and shards
	entries map[string]*entry // by digest
	total   int64             // Invariant: the sum of entry.bytes of the entries that are present.
	clock   uint64            // the highest entry.used
}

type cacheOptions struct {
	dir     string
	limit   int64 // bytes
	fetch   fetcher
	changed func() // is called after the holdings changed
	log     *slog.Logger
	metrics *metrics.Worker
}

// entry is the file of a shard, which may not be there yet. Only the goroutine that has claimed it
// changes the file, and the fields present, verified and bytes.
type entry struct {
	digest   string
	bytes    int64
	present  bool // true if the file exists
	verified bool // true if its digest was verified. Invariant: it is present.
	closed   bool // true if no shard has it open, after it was verified
	wanted   bool // true if the leader asked to hold it
	used     uint64
	busy     chan struct{} // closed by unclaim; nil if nobody has claimed the entry
	open     *shard        // nil if it is not open
}

// shard is an open shard, mapped once for all jobs.
type shard struct {
	rows  *dataset.Rows // valid while there are users
	unmap func() error
	users int
	of    *entry
}

// prefetchers is how many shards are prefetched at the same time.
const prefetchers = 2

// corruptFiles are the files that package blobs has moved aside.
const corruptFiles = "*.corrupt"

// openCache opens a folder. Its files count as held once they are verified.
func openCache(o cacheOptions) (*cache, error) {
	folder, err := blobs.Open(o.dir, blobs.NoSync())
	if err != nil {
		return nil, err
	}
	c := &cache{cacheOptions: o, folder: folder, entries: make(map[string]*entry)}
	left, err := filepath.Glob(filepath.Join(folder.Dir(), corruptFiles))
	for _, path := range left {
		err = errors.Join(err, os.Remove(path))
	}
	if err != nil {
		return nil, err
	}
	list, err := folder.List()
	if err != nil {
		return nil, err
	}
	for _, digest := range list {
		if size, err := folder.Size(digest); err == nil {
			c.entries[digest] = &entry{digest: digest, bytes: size, present: true}
			c.total += size
		}
	}
	c.makeRoom(0, false)
	return c, nil
}

// verify verifies all files that were there at the start, so that the leader learns what this
// worker holds.
func (c *cache) verify(ctx context.Context) {
	c.mu.Lock()
	var list []string
	for _, e := range c.entries {
		if e.present && !e.verified {
			list = append(list, e.digest)
		}
	}
	c.mu.Unlock()
	slices.Sort(list)
	for _, digest := range list {
		e, err := c.claim(ctx, dataset.ShardRef{Digest: digest})
		if err != nil {
			return
		}
		if e.present {
			c.check(e)
		}
		c.unclaim(e)
	}
}

// holdings returns the digests of verified files in ascending order, and the bytes of all files.
func (c *cache) holdings() (digests []string, bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.entries {
		if e.verified {
			digests = append(digests, e.digest)
		}
	}
	slices.Sort(digests)
	return digests, c.total
}

// acquire returns an open shard, and fetches it if it is not here. The caller releases it.
func (c *cache) acquire(ctx context.Context, ref dataset.ShardRef) (*shard, error) {
	e, err := c.claim(ctx, ref)
	if err != nil {
		return nil, err
	}
	defer c.unclaim(e)
	c.mu.Lock()
	s := e.open
	if s != nil {
		s.users++
	}
	c.mu.Unlock()
	if s != nil {
		return s, nil
	}
	s, err = c.load(ctx, e)
	if err != nil {
		return nil, fmt.Errorf("shard %.12s: %w", ref.Digest, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s.users, e.open = 1, s
	return s, nil
}

// release ends a use of a shard. The last one unmaps it.
func (c *cache) release(s *shard) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.users--; s.users > 0 {
		return
	}
	if s.of.open == s {
		s.of.open, s.of.closed = nil, true
	}
	if err := s.unmap(); err != nil {
		c.log.Warn("a shard could not be unmapped from memory", "digest", s.of.digest, "error", err)
	}
}

// reverify makes files be verified again before their next use. A shard that is open stays as it
// is.
func (c *cache) reverify(ctx context.Context, shards []dataset.ShardRef) {
	for _, ref := range shards {
		e, err := c.claim(ctx, ref)
		if err != nil {
			continue
		}
		c.mu.Lock()
		e.verified, e.open = false, nil
		c.mu.Unlock()
		c.unclaim(e)
	}
	c.changed()
}

// load opens the file of e. A file that was closed is verified again first, because disks change
// what they keep. A file that was verified and does not open was removed, and is fetched again. If
// it was verified earlier and is not a shard now, it is verified again.
func (c *cache) load(ctx context.Context, e *entry) (*shard, error) {
	before := e.verified
	c.mu.Lock()
	due := e.verified && e.closed
	e.closed = false
	c.mu.Unlock()
	if due {
		if err := c.folder.Verify(e.digest); err != nil {
			c.discard(e, err)
		}
	}
	if err := c.ensure(ctx, e, false); err != nil {
		return nil, err
	}
	s, err := c.openFile(e)
	format := errors.Is(err, dataset.ErrFormat)
	switch {
	case err == nil || format && !before:
		return s, err
	case format:
		c.mu.Lock()
		e.verified = false
		c.mu.Unlock()
	default:
		c.forget(e)
	}
	if err := c.ensure(ctx, e, false); err != nil {
		return nil, err
	}
	return c.openFile(e)
}

func (c *cache) openFile(e *entry) (*shard, error) {
	path, err := c.folder.Path(e.digest)
	if err != nil {
		return nil, err
	}
	rows, unmap, err := dataset.OpenShardFile(path)
	switch {
	case errors.Is(err, dataset.ErrFormat):
		return nil, batch.Permanent(err) // its digest is right, so it is the same everywhere
	case err != nil:
		return nil, batch.Passing(err)
	}
	return &shard{rows: rows, unmap: unmap, of: e}, nil
}

// claim waits until no other goroutine works on a shard, and returns its entry, which is the
// caller's until unclaim.
func (c *cache) claim(ctx context.Context, ref dataset.ShardRef) (*entry, error) {
	if !blobs.Valid(ref.Digest) {
		return nil, batch.Permanent(fmt.Errorf("%w: %.80q", blobs.ErrDigest, ref.Digest))
	}
	for {
		c.mu.Lock()
		e := c.entries[ref.Digest]
		if e == nil {
			e = &entry{digest: ref.Digest, bytes: ref.Bytes}
			c.entries[ref.Digest] = e
		}
		busy := e.busy
		if busy == nil {
			c.clock++
			e.busy, e.used = make(chan struct{}), c.clock
		}
		c.mu.Unlock()
		if busy == nil {
			return e, nil
		}
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// unclaim ends a claim. An entry without a file is removed.
func (c *cache) unclaim(e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(e.busy)
	e.busy = nil
	if !e.present && e.open == nil {
		delete(c.entries, e.digest)
	}
}

// ensure makes sure that the file of e, which the caller has claimed, is there and verified. A
// standby does not evict shards that the leader wants.
func (c *cache) ensure(ctx context.Context, e *entry, standby bool) error {
	if e.present && c.check(e) == nil {
		return nil
	}
	if !c.makeRoom(e.bytes, standby) && standby {
		return errNoRoom
	}
	for {
		err := c.pull(ctx, e)
		if !errors.Is(err, errMoved) || ctx.Err() != nil {
			return err
		}
	}
}

var errNoRoom = errors.New("the cache has no room for the shard")

// check verifies a file, and removes it if it is wrong.
func (c *cache) check(e *entry) error {
	if e.verified {
		return nil
	}
	err := c.folder.Verify(e.digest)
	if err == nil {
		c.mark(e, true)
		return nil
	}
	c.discard(e, err)
	return err
}

// discard removes a file that cannot be verified.
func (c *cache) discard(e *entry, err error) {
	if errors.Is(err, blobs.ErrCorrupt) {
		c.metrics.BlobsCorrupt.Inc()
		c.log.Warn("a file of the cache is corrupt and is fetched again", "digest", e.digest, "error", err)
		if path, err := c.folder.Path(e.digest); err == nil {
			os.Remove(path + ".corrupt") // if it fails, the next start removes it
		}
	}
	c.forget(e)
}

// pull fetches the file of e. It fails with errMoved if the connection moves meanwhile.
func (c *cache) pull(ctx context.Context, e *entry) error {
	w, err := c.folder.Writer()
	if err != nil {
		return batch.Passing(err)
	}
	defer w.Close()
	if err := c.fetch(ctx, e.digest, e.bytes, w); err != nil {
		return batch.Passing(err)
	}
	if _, err := w.Commit(e.digest); err != nil {
		return batch.Passing(err)
	}
	c.metrics.BlobsFetched.Inc()
	c.mu.Lock()
	e.bytes = w.Size()
	c.mu.Unlock()
	c.mark(e, true)
	return nil
}

// mark notes whether the file of e is there and verified, or does not exist.
func (c *cache) mark(e *entry, there bool) {
	c.mu.Lock()
	if there != e.present {
		if there {
			c.total += e.bytes
		} else {
			c.total -= e.bytes
		}
	}
	e.present, e.verified = there, there
	c.mu.Unlock()
	c.changed()
}

// forget removes e's file.
func (c *cache) forget(e *entry) {
	if err := c.folder.Delete(e.digest); err != nil {
		c.log.Warn("a file of the cache could not be deleted", "digest", e.digest, "error", err)
	}
	c.mark(e, false)
}

// makeRoom evicts shards until need more bytes fit, and reports whether they do. It begins with the
// shard that was unused for longest. It spares shards in use and, for a standby, shards that the
// leader wants.
func (c *cache) makeRoom(need int64, standby bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.total+need > c.limit {
		e := c.oldest(standby)
		if e == nil {
			return false
		}
		if err := c.folder.Delete(e.digest); err != nil {
			c.log.Warn("a shard could not be evicted from the cache", "digest", e.digest, "error", err)
			return false
		}
		c.total -= e.bytes
		delete(c.entries, e.digest)
		c.changed()
	}
	return true
}

// oldest returns the entry to evict next, or nil. The lock is held.
func (c *cache) oldest(standby bool) *entry {
	var oldest *entry
	for _, e := range c.entries {
		if e.busy != nil || e.open != nil || !e.present || standby && e.wanted {
			continue
		}
		if oldest == nil || e.used < oldest.used || e.used == oldest.used && e.digest < oldest.digest {
			oldest = e
		}
	}
	return oldest
}

// prefetch fetches a shard that the leader wants here, unless there is no room for it.
func (c *cache) prefetch(ctx context.Context, ref dataset.ShardRef) {
	if ctx.Err() != nil {
		return
	}
	switch err := c.hold(ctx, ref); {
	case err == nil || ctx.Err() != nil:
	case errors.Is(err, errNoRoom):
		c.log.Debug("a shard is not in the cache", "digest", ref.Digest, "reason", err)
	default:
		c.log.Warn("a shard could not be prefetched", "digest", ref.Digest, "error", err)
	}
}

// hold fetches a shard that the leader wants here. It fails with errNoRoom if there is no room for
// it.
func (c *cache) hold(ctx context.Context, ref dataset.ShardRef) error {
	e, err := c.claim(ctx, ref)
	if err != nil {
		return err
	}
	c.mu.Lock()
	e.wanted = true
	c.mu.Unlock()
	defer c.unclaim(e)
	return c.ensure(ctx, e, true)
}

// clearWanted ends all wishes of the leader to hold shards.
func (c *cache) clearWanted() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.entries {
		e.wanted = false
	}
}
