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
)

// fetcher pulls a blob of so many bytes into w; only after nil may they be used.
type fetcher func(ctx context.Context, digest string, size int64, w io.Writer) error

// cache keeps shards as files named by their SHA-256, and maps those in use into
// memory. A file is believed only after this process has read it and found its
// digest right. Beyond limit bytes the shard that was unused for longest goes.
type cache struct {
	cacheOptions
	folder *blobs.Folder

	mu      sync.Mutex
	entries map[string]*entry // by digest
	total   int64             // bytes of all files
	clock   uint64
}

type cacheOptions struct {
	dir     string
	limit   int64 // bytes
	fetch   fetcher
	changed func() // is told when holdings change
	log     *slog.Logger
	metrics *metrics.Worker
}

// entry is a file, or one that is about to be fetched.
type entry struct {
	digest   string
	bytes    int64
	present  bool // the file exists
	verified bool // and is right
	closed   bool // nobody has it open any more since it was read
	wanted   bool // the leader asked to hold it
	used     uint64
	busy     chan struct{} // closed when who fetches or opens it is done
	open     *shard
}

// shard is an open shard.
type shard struct {
	rows  *dataset.Rows
	unmap func() error
	users int
	of    *entry
}

const corruptFiles = "*.corrupt" // what internal/blobs moves aside

// openCache opens the cache folder; its files count as held once verify found
// them right.
func openCache(o cacheOptions) (*cache, error) {
	folder, err := blobs.Open(o.dir, blobs.NoSync())
	if err != nil {
		return nil, err
	}
	c := &cache{cacheOptions: o, folder: folder, entries: make(map[string]*entry)}
	if err := c.clearCorrupt(); err != nil {
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

func (c *cache) clearCorrupt() error {
	left, err := filepath.Glob(filepath.Join(c.folder.Dir(), corruptFiles))
	for _, path := range left {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// verify reads all files that were there at the start, so that the leader learns
// what this worker holds.
func (c *cache) verify(ctx context.Context) {
	for _, digest := range c.unverified() {
		e, err := c.claim(ctx, dataset.ShardRef{Digest: digest})
		if err != nil {
			return
		}
		if e.present {
			c.check(e) // what is wrong is removed and logged there
		}
		c.unclaim(e)
	}
}

func (c *cache) unverified() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []string
	for _, e := range c.entries {
		if e.present && !e.verified {
			list = append(list, e.digest)
		}
	}
	slices.Sort(list)
	return list
}

// holdings lists the digests of verified files in ascending order, and the bytes
// of all files.
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

// acquire returns an open shard, fetching it if need be. The caller releases it.
func (c *cache) acquire(ctx context.Context, ref dataset.ShardRef) (*shard, error) {
	e, err := c.claim(ctx, ref)
	if err != nil {
		return nil, err
	}
	defer c.unclaim(e)
	if s := c.share(e); s != nil {
		return s, nil
	}
	s, err := c.load(ctx, e)
	if err != nil {
		return nil, fmt.Errorf("shard %.12s: %w", ref.Digest, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s.users, e.open = 1, s
	return s, nil
}

// share returns e's shard for one more user where it is open.
func (c *cache) share(e *entry) *shard {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.open != nil {
		e.open.users++
	}
	return e.open
}

// release gives up a shard; nobody may read its rows once all have.
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

// distrust has files read again before they are used next, though they were
// found right before. Who has them open keeps the mapping of now.
func (c *cache) distrust(ctx context.Context, shards []dataset.ShardRef) {
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

// load makes sure that e's file is there and right, and opens it. One that nobody had
// open for a while is read again first: disks change what they keep. A file that
// verified and yet does not open is fetched once more: someone took it away. One
// that was found right before, and is no shard now, is read again.
func (c *cache) load(ctx context.Context, e *entry) (*shard, error) {
	before := e.verified
	c.reread(e)
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
		return nil, permanent(err) // its digest is right: it is so everywhere
	case err != nil:
		return nil, passing(err)
	}
	return &shard{rows: rows, unmap: unmap, of: e}, nil
}
