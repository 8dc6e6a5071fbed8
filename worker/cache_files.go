package worker

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/blobs"
)

// claim waits until nobody else works on a shard and returns its entry, busy
// with the caller until unclaim. Only who claimed an entry changes its file.
func (c *cache) claim(ctx context.Context, ref dataset.ShardRef) (*entry, error) {
	if !blobs.Valid(ref.Digest) {
		return nil, permanent(fmt.Errorf("%w: %.80q", blobs.ErrDigest, ref.Digest))
	}
	for {
		e, busy := c.tryClaim(ref)
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

// tryClaim returns what to wait for where the entry is busy.
func (c *cache) tryClaim(ref dataset.ShardRef) (e *entry, busy chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e = c.entries[ref.Digest]
	if e == nil {
		e = &entry{digest: ref.Digest, bytes: ref.Bytes}
		c.entries[ref.Digest] = e
	}
	if e.busy != nil {
		return nil, e.busy
	}
	c.clock++
	e.busy, e.used = make(chan struct{}), c.clock
	return e, nil
}

// unclaim ends what claim began; an entry without a file goes.
func (c *cache) unclaim(e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(e.busy)
	e.busy = nil
	if !e.present && e.open == nil {
		delete(c.entries, e.digest)
	}
}

// ensure makes sure that the file of e, which is busy with the caller, is there
// and right. For a mere standby nothing that the leader wants is evicted.
func (c *cache) ensure(ctx context.Context, e *entry, standby bool) error {
	if e.verified {
		return nil
	}
	if e.present && c.check(e) == nil {
		return nil
	}
	if !c.makeRoom(e.bytes, standby) && standby {
		return errNoRoom
	}
	return c.pull(ctx, e)
}

var errNoRoom = errors.New("the cache has no room for the shard")

// check verifies a file that is there. One that is wrong is removed.
func (c *cache) check(e *entry) error {
	if e.verified {
		return nil
	}
	err := c.folder.Verify(e.digest)
	if err == nil {
		c.set(e, true)
		return nil
	}
	c.wrong(e, err)
	return err
}

// reread verifies a file again that was closed since it was found right.
func (c *cache) reread(e *entry) {
	c.mu.Lock()
	due := e.verified && e.closed
	e.closed = false
	c.mu.Unlock()
	if !due {
		return
	}
	if err := c.folder.Verify(e.digest); err != nil {
		c.wrong(e, err)
	}
}

// wrong removes a file that does not verify.
func (c *cache) wrong(e *entry, err error) {
	if errors.Is(err, blobs.ErrCorrupt) {
		c.metrics.BlobsCorrupt.Inc()
		c.log.Warn("a file of the cache is corrupt and is fetched again", "digest", e.digest, "error", err)
		if path, err := c.folder.Path(e.digest); err == nil {
			os.Remove(path + ".corrupt") // best effort: the next start removes it too
		}
	}
	c.forget(e)
}

// pull fetches the file of e, from the beginning where the connection moves under way.
func (c *cache) pull(ctx context.Context, e *entry) error {
	for {
		if err := c.pullOnce(ctx, e); !errors.Is(err, errMoved) || ctx.Err() != nil {
			return err
		}
	}
}

func (c *cache) pullOnce(ctx context.Context, e *entry) error {
	w, err := c.folder.Writer()
	if err != nil {
		return passing(err)
	}
	defer w.Close()
	if err := c.fetch(ctx, e.digest, e.bytes, w); err != nil {
		return passing(err)
	}
	if _, err := w.Commit(e.digest); err != nil {
		return passing(err)
	}
	c.metrics.BlobsFetched.Inc()
	c.mu.Lock()
	e.bytes = w.Size()
	c.mu.Unlock()
	c.set(e, true)
	return nil
}

// set notes that e's file is there and right, or gone.
func (c *cache) set(e *entry, there bool) {
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
	c.set(e, false)
}

// makeRoom evicts shards until need more bytes fit, the one unused for longest
// first, and reports whether they do. It spares those in use and, for a standby,
// those that the leader wants.
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

// hold fetches a shard that the leader wants here, unless there is no room.
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

// unwant lets all shards be evicted that the leader asked to hold.
func (c *cache) unwant() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.entries {
		e.wanted = false
	}
}
