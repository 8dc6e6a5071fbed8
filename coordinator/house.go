package coordinator

import (
	"context"
	"errors"
	"iter"
	"os"
	"slices"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/internal/digests"
	"github.com/coppice-ldl/coppice/protocol"
)

// houseEvery is the pace of housekeeping; tests have it quicker.
var houseEvery = 5 * time.Second

// grace is the default of Config.BlobGrace.
const grace = protocol.BlobGrace

// keepHouse deletes what is not kept, blobs that nothing refers to among it, until ctx is done.
func (n *node) keepHouse(ctx context.Context) {
	tick := time.NewTicker(houseEvery)
	defer tick.Stop()
	ages, replaced := newBlobAges(), state.Replaced{}
	for {
		n.keepJobs(ctx)
		replaced = n.lookAtBlobs(ages, replaced)
		n.condemn(ctx, ages)
		n.deleteCondemned(ages)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// lookAtBlobs takes note of the blobs of the folder. before are the training states that were replaced at the last look;
// it returns those of this one. A state that was committed and replaced between two looks is told by them alone.
func (n *node) lookAtBlobs(ages *blobAges, before state.Replaced) state.Replaced {
	s := n.store.State() // before the list: it has all that the state replaced
	replaced := make(digests.Set)
	for _, d := range s.Replaced().Since(before) {
		replaced.Add(d)
	}
	if err := ages.look(time.Now(), n.blobs.Folder.Each, seenBlobs{s.References(), passing(s), replaced}, n.written); err != nil {
		n.cfg.Log.Warn("the folder of blobs cannot be listed", "error", err)
		return before
	}
	return s.Replaced()
}

// passing calls yield for the blobs that are training states of jobs, or results of units.
func passing(s *state.State) iter.Seq[digests.Digest] {
	return func(yield func(digests.Digest) bool) {
		for _, j := range s.Jobs() {
			if d, ok := digests.Parse(j.TrainerBlob); ok && !yield(d) {
				return
			}
			for p := range j.Collected {
				if p.WasRun() && !yield(p.Digest) {
					return
				}
			}
		}
	}
}

// condemn proposes, on the leader, the deletion of old blobs that nothing refers to.
func (n *node) condemn(ctx context.Context, ages *blobAges) {
	if n.leading.Load() == nil {
		return
	}
	old := n.condemnable(ages)
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

// condemnable lists the blobs of at least the grace age that nothing refers to and that no
// earlier condemnation names.
func (n *node) condemnable(ages *blobAges) (list []string) {
	now, s := time.Now(), n.store.State()
	refs, condemned := s.References(), s.Condemned()
	for d := range ages.of {
		if refs.Contains(d) || !ages.reached(d, now, n.cfg.BlobGrace) {
			continue
		}
		if _, known := condemned[d.String()]; !known {
			list = append(list, d.String())
		}
	}
	slices.Sort(list)
	return list
}

// written returns when a blob's file was written last, by the wall clock.
func (n *node) written(d digests.Digest) (time.Time, bool) {
	path, err := n.blobs.Folder.Path(d.String())
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
// this coordinator's applied index and old enough here as well.
func (n *node) deleteCondemned(ages *blobAges) {
	now, s := time.Now(), n.store.State()
	refs := s.References()
	for text := range s.Condemned() {
		d, _ := digests.Parse(text)
		if refs.Contains(d) || !ages.reached(d, now, n.cfg.BlobGrace) { // most marks are of blobs that are gone
			continue
		}
		if written, here := n.written(d); !here || !ages.unchanged(d, written) {
			continue
		}
		if err := n.blobs.Folder.Delete(text); err != nil && !errors.Is(err, blobs.ErrHeld) { // a backup needs it
			n.cfg.Log.Warn("a blob could not be deleted", "digest", text, "error", err)
		}
	}
}
