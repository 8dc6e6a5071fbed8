package coordinator

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/state"
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
	for {
		n.fetchMissing(ctx)
		n.keepJobs(ctx)
		n.condemn(ctx)
		n.deleteCondemned()
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

// condemn proposes, on the leader, the deletion of old blobs that nothing refers
// to.
func (n *node) condemn(ctx context.Context) {
	if n.leading.Load() == nil {
		return
	}
	old := n.unreferenced(time.Now().Add(-grace))
	old = old[:min(len(old), condemnedEachTime)]
	for digests := range slices.Chunk(old, condemnedAtOnce) {
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

// condemnedEachTime bounds what is marked in one turn: after a deletion of very many
// jobs each coordinator sees a mark in a few turns before newer ones take its place.
const condemnedEachTime = state.MaxCondemned / 4

// unreferenced lists the blobs of this folder, written before a time, that
// neither a reference nor an earlier condemnation names.
func (n *node) unreferenced(before time.Time) []string {
	s := n.store.State()
	refs, condemned := s.References(), s.Condemned()
	all, err := n.blobs.Folder.List()
	if err != nil {
		n.cfg.Log.Warn("the blob folder cannot be listed", "error", err)
		return nil
	}
	var list []string
	for _, digest := range all {
		if _, known := condemned[digest]; known || refs[digest] {
			continue
		}
		if n.olderThan(digest, before) {
			list = append(list, digest)
		}
	}
	return list
}

func (n *node) olderThan(digest string, before time.Time) bool {
	path, err := n.blobs.Folder.Path(digest)
	if err != nil {
		return false
	}
	info, err := os.Stat(path)
	return err == nil && info.ModTime().Before(before)
}

// deleteCondemned deletes the condemned blobs that are still unreferenced at this
// coordinator's applied index and old enough here as well.
func (n *node) deleteCondemned() {
	s := n.store.State()
	refs := s.References()
	before := time.Now().Add(-grace)
	for digest := range s.Condemned() {
		if refs[digest] || !n.blobs.Folder.Has(digest) || !n.olderThan(digest, before) {
			continue
		}
		if err := n.blobs.Folder.Delete(digest); err != nil && !errors.Is(err, blobs.ErrHeld) { // a backup needs it
			n.cfg.Log.Warn("a blob could not be deleted", "digest", digest, "error", err)
		}
	}
}
