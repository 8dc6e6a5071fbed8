// Package retention deletes what a coordinator does not keep: on the leader, ended jobs
// beyond a number; on each coordinator, blobs that nothing refers to.
//
// A blob is deleted in two steps. The leader marks it with a Condemn entry once it is
// old and nothing refers to it. Then each coordinator deletes it, if it is old there as
// well and the state of that coordinator still has no reference to it.
package retention

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"log/slog"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/internal/digests"
	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/protocol"
)

const (
	// condemnedAtOnce is how many digests one entry names: each has 64 digits and three
	// characters of JSON, so an entry stays well below 512 KiB.
	condemnedAtOnce = 4096
	// condemnedEachTurn bounds what one turn marks. After a deletion of very many jobs,
	// each coordinator sees a mark for a few turns before newer marks replace it in the
	// state.
	condemnedEachTurn = state.MaxCondemned / 4
)

// Log is the replicated log, as *store.Store is.
type Log interface {
	State() *state.State
	Propose(ctx context.Context, entry []byte) (index uint64, value any, err error)
}

// Config says what is kept.
type Config struct {
	Log     Log
	Blobs   *blobs.Folder
	Leading func() bool   // reports whether this coordinator leads
	Every   time.Duration // between two turns
	// BlobGrace is how old a blob without a reference must be before it is deleted.
	BlobGrace time.Duration
	KeepJobs  int // ended jobs that are kept; 0: all
	Logger    *slog.Logger
}

// Run deletes what is not kept until ctx is done.
func Run(ctx context.Context, cfg Config) {
	k := keeper{Config: cfg, ages: newBlobAges()}
	for range wait.Every(ctx, cfg.Every) {
		if k.Leading() && k.KeepJobs > 0 {
			k.deleteJobs(ctx)
		}
		k.look()
		if k.Leading() {
			k.condemn(ctx)
		}
		k.deleteCondemned()
	}
}

// keeper is what Run remembers. Only its goroutine uses it.
type keeper struct {
	Config
	ages *blobAges
	// replaced has the training states that the last look found replaced. A state that
	// was committed and replaced between two looks is known from this list alone.
	replaced state.Replaced
}

// deleteJobs proposes the deletion of the ended jobs beyond KeepJobs.
func (k *keeper) deleteJobs(ctx context.Context) {
	for ids := range slices.Chunk(surplus(k.Log.State().Jobs(), k.KeepJobs), protocol.MaxDelete) {
		entry := protocol.EncodeEntry(protocol.EntryJobsDelete, protocol.JobsDeleteEntry{Jobs: ids, Time: time.Now().Unix()})
		if _, _, err := k.Log.Propose(ctx, entry); err != nil {
			k.Logger.Debug("ended jobs could not be deleted", "error", err)
			return
		}
		k.Logger.Info("ended jobs were deleted", "jobs", len(ids), "keep", k.KeepJobs, "first", ids[0], "last",
			ids[len(ids)-1])
	}
}

// look notes which blobs the folder has.
func (k *keeper) look() {
	s := k.Log.State() // read before the folder: it has every state that was replaced until now
	replaced := make(digests.Set)
	for _, d := range s.Replaced().Since(k.replaced) {
		replaced.Add(d)
	}
	if err := k.ages.look(time.Now(), k.Blobs.Each, seenBlobs{s.References(), passing(s), replaced},
		k.modified); err != nil {
		k.Logger.Warn("the folder of blobs cannot be listed", "error", err)
		return
	}
	k.replaced = s.Replaced()
}

// condemn proposes marks for the blobs of at least BlobGrace that nothing refers to and
// that have no mark.
func (k *keeper) condemn(ctx context.Context) {
	now, s := time.Now(), k.Log.State()
	refs, condemned := s.References(), s.Condemned()
	var old []string
	for d := range k.ages.of {
		if refs.Contains(d) || !k.ages.reached(d, now, k.BlobGrace) {
			continue
		}
		if _, marked := condemned[d.String()]; !marked {
			old = append(old, d.String())
		}
	}
	slices.Sort(old)
	old = old[:min(len(old), condemnedEachTurn)]
	for digests := range slices.Chunk(old, condemnedAtOnce) {
		entry := protocol.EncodeEntry(protocol.EntryCondemn, protocol.CondemnEntry{Digests: digests})
		if _, _, err := k.Log.Propose(ctx, entry); err != nil {
			k.Logger.Debug("blobs could not be marked for deletion", "error", err)
			return
		}
	}
}

// deleteCondemned deletes the marked blobs that are old here and that this
// coordinator's state does not refer to.
func (k *keeper) deleteCondemned() {
	now, s := time.Now(), k.Log.State()
	refs := s.References()
	for text := range s.Condemned() {
		d, _ := digests.Parse(text)
		if refs.Contains(d) || !k.ages.reached(d, now, k.BlobGrace) { // most marked blobs are deleted already
			continue
		}
		// it was written after the look
		if written, here := k.modified(d); !here || k.ages.of[d].written != written.UnixNano() {
			continue
		}
		if err := k.Blobs.Delete(text); err != nil && !errors.Is(err, blobs.ErrHeld) { // a backup needs it
			k.Logger.Warn("a blob could not be deleted", "digest", text, "error", err)
		}
	}
}

// modified returns the modification time of a blob's file, by the wall clock. It
// returns false if there is no file.
func (k *keeper) modified(d digests.Digest) (time.Time, bool) {
	path, err := k.Blobs.Path(d.String())
	if err != nil {
		return time.Time{}, false
	}
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}, false
	}
	return info.ModTime(), true
}

// passing yields the blobs that are training states of jobs, or results of tasks.
func passing(s *state.State) iter.Seq[digests.Digest] {
	return func(yield func(digests.Digest) bool) {
		for _, j := range s.Jobs() {
			if d, ok := digests.Parse(j.TrainerBlob); ok && !yield(d) {
				return
			}
			for p := range j.Gathered {
				if p.WasRun() && !yield(p.Digest) {
					return
				}
			}
		}
	}
}

// surplus lists the ended jobs beyond keep; the earliest to end come first. An
// experiment counts as one job, which has ended once all of its jobs have.
func surplus(jobs []*state.Job, keep int) (ids []uint64) {
	// A lot is kept or deleted as a whole: a job, or all jobs of an experiment.
	type lot struct {
		ids   []uint64
		ended uint64 // the greatest index of the entries that ended its jobs
	}
	var lots []*lot
	experiments, unended := make(map[string]*lot), state.Unended(jobs)
	for _, j := range jobs {
		switch l := experiments[j.Experiment]; {
		case !j.State.Final() || unended[j.Experiment]:
		case j.Experiment == "":
			lots = append(lots, &lot{[]uint64{j.ID}, j.EndIndex})
		case l == nil:
			experiments[j.Experiment] = &lot{[]uint64{j.ID}, j.EndIndex}
		default:
			l.ids, l.ended = append(l.ids, j.ID), max(l.ended, j.EndIndex)
		}
	}
	lots = slices.AppendSeq(lots, maps.Values(experiments))
	slices.SortFunc(lots, func(a, b *lot) int { return cmp.Compare(a.ended, b.ended) })
	for _, l := range lots[:max(0, len(lots)-keep)] {
		ids = append(ids, l.ids...)
	}
	return ids
}

// passingGrace is how long a training state or a task's result stays after the last
// reference to it. It is short because these blobs are large or many, and nobody refers
// to one again without uploading it, which makes it young.
const passingGrace = time.Minute

// blobAges knows how long ago the blobs of the folder were written. It uses the
// monotonic clock of this process: a jump of the wall clock deletes nothing, and at a
// start every blob is new. A folder may have hundreds of thousands of blobs, so an
// entry takes only about 60 bytes.
type blobAges struct {
	began time.Time // the first look
	looks uint32    // number of looks
	of    map[digests.Digest]blobAge
}

type blobAge struct {
	since   time.Duration // from began until the blob was written, or was last referred to if passing
	written int64         // modification time of the file in Unix nanoseconds; another time means a new upload
	look    uint32        // the last look that found the blob
	passing bool          // true if the blob has been a training state or a task's result since it was written
}

func newBlobAges() *blobAges { return &blobAges{of: make(map[digests.Digest]blobAge)} }

// seenBlobs is what the state says of blobs at a look.
type seenBlobs struct {
	referenced digests.Set
	passing    iter.Seq[digests.Digest] // the referenced training states and results of tasks
	replaced   digests.Set              // training states that another state replaced since the last look
}

// look updates the ages to the blobs for which list calls its argument, and forgets all
// others. If list fails, it forgets none.
//
// written returns the modification time of a blob's file, or false if there is no file.
// It is called only for blobs that are new or without a reference. A blob that was
// uploaded again since the last look gets the long grace even if it is in
// seen.replaced: a reference to it may follow.
func (a *blobAges) look(now time.Time, list func(func(digests.Digest)) error, seen seenBlobs,
	written func(digests.Digest) (time.Time, bool)) error {
	if a.looks++; a.looks == 1 {
		a.began = now
	}
	since := now.Sub(a.began)
	err := list(func(d digests.Digest) {
		if age, ok := a.next(d, since, seen, written); ok {
			age.look = a.looks
			a.of[d] = age
		}
	})
	if err != nil {
		return err
	}
	for d := range seen.passing {
		if age, known := a.of[d]; known && !age.passing {
			age.since, age.passing = since, true
			a.of[d] = age
		}
	}
	for d, age := range a.of {
		if age.look != a.looks {
			delete(a.of, d)
		}
	}
	return nil
}

// next returns the new age of a blob that the folder lists. It returns false if the
// file has just been deleted.
func (a *blobAges) next(d digests.Digest, now time.Duration, seen seenBlobs, written func(digests.Digest) (time.Time,
	bool)) (age blobAge, ok bool) {
	age, known := a.of[d]
	if known && seen.referenced.Contains(d) {
		if age.passing {
			age.since = now
		}
		return age, true
	}
	replaced := seen.replaced.Contains(d)
	switch at, ok := written(d); {
	case ok && (!known || age.written != at.UnixNano()):
		return blobAge{since: now, written: at.UnixNano(), passing: !known && replaced}, true
	case known && replaced:
		age.passing = true
	}
	return age, known
}

// reached reports whether a blob had at least age d when the folder was last listed.
// For a passing blob, passingGrace is enough.
func (a *blobAges) reached(blob digests.Digest, now time.Time, d time.Duration) bool {
	b, known := a.of[blob]
	if b.passing {
		d = min(d, passingGrace)
	}
	return known && now.Sub(a.began)-b.since >= d
}
