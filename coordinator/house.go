package coordinator

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/protocol"
)

// The pace of housekeeping.
const (
	houseEvery = 5 * time.Second
	// grace is how long an unreferenced blob stays: an import puts its blobs before
	// the manifest refers to them.
	grace = time.Hour
)

// keepHouse fetches blobs that this coordinator lacks and deletes those that
// nothing refers to, until ctx is done.
func (n *node) keepHouse(ctx context.Context) {
	tick := time.NewTicker(houseEvery)
	defer tick.Stop()
	idle := make(idleBlobs)
	for {
		n.fetchMissing(ctx)
		n.lookForIdle(idle)
		n.condemn(ctx, idle)
		n.deleteCondemned(idle)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// fetchMissing brings the blobs that committed state refers to and that are not
// in this folder: it was down, or its copy was corrupt.
func (n *node) fetchMissing(ctx context.Context) {
	for digest := range n.store.State().References() {
		if ctx.Err() != nil {
			return
		}
		if n.blobs.Folder.Has(digest) {
			continue
		}
		if err := n.blobs.Fetch(ctx, digest); err != nil {
			n.cfg.Log.Debug("a blob is not here and could not be fetched", "digest", digest, "error", err)
		}
	}
}

// lookForIdle takes note of the blobs that nothing refers to.
func (n *node) lookForIdle(idle idleBlobs) {
	all, err := n.blobs.Folder.List()
	if err != nil {
		n.cfg.Log.Warn("the blob folder cannot be listed", "error", err)
		return
	}
	refs := n.store.State().References()
	unreferenced := make(map[string]time.Time)
	for _, digest := range all {
		if refs[digest] {
			continue
		}
		if written, ok := n.written(digest); ok {
			unreferenced[digest] = written
		}
	}
	idle.look(time.Now(), unreferenced)
}

// condemn proposes, on the leader, the deletion of blobs that nothing refers to for
// long.
func (n *node) condemn(ctx context.Context, idle idleBlobs) {
	if n.leading.Load() == nil {
		return
	}
	for digests := range slices.Chunk(n.condemnable(idle), condemnedAtOnce) {
		entry := protocol.EncodeEntry(protocol.EntryCondemn, protocol.CondemnEntry{Digests: digests})
		if _, _, err := n.store.Propose(ctx, entry); err != nil {
			n.cfg.Log.Debug("blobs could not be marked for deletion", "error", err)
			return
		}
	}
}

// condemnedAtOnce is how many digests one entry names: 64 digits each and three
// characters between them, well below the 512 KiB of an entry.
const condemnedAtOnce = 4096

// condemnable lists the blobs that were referred to by nothing for the grace time and
// that no earlier condemnation names.
func (n *node) condemnable(idle idleBlobs) (list []string) {
	now, s := time.Now(), n.store.State()
	refs, condemned := s.References(), s.Condemned()
	for digest := range idle {
		if _, known := condemned[digest]; !known && !refs[digest] && idle.longer(digest, now, grace) {
			list = append(list, digest)
		}
	}
	slices.Sort(list)
	return list
}

// written returns when a blob's file was written last, by the wall clock.
func (n *node) written(digest string) (time.Time, bool) {
	path, err := n.blobs.Folder.Path(digest)
	if err != nil {
		return time.Time{}, false
	}
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}, false
	}
	return info.ModTime(), true
}

// deleteCondemned deletes the condemned blobs that are still referred to by nothing at
// this coordinator's applied index, and were so here for the grace time as well.
func (n *node) deleteCondemned(idle idleBlobs) {
	now, s := time.Now(), n.store.State()
	refs := s.References()
	for digest := range s.Condemned() {
		written, here := n.written(digest)
		if refs[digest] || !here || !written.Equal(idle[digest].written) || !idle.longer(digest, now, grace) {
			continue
		}
		if err := n.blobs.Folder.Delete(digest); err != nil && !errors.Is(err, blobs.ErrHeld) { // a backup needs it
			n.cfg.Log.Warn("a blob could not be deleted", "digest", digest, "error", err)
		}
	}
}
