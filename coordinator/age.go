package coordinator

import (
	"iter"
	"time"
)

// blobAges tells how long ago blobs of the folder were written. Times are those of this
// process's monotonic clock: a wall clock that jumps deletes nothing, and after a start each
// blob is as young as the process.
type blobAges map[string]blobAge

type blobAge struct {
	since   time.Time
	written time.Time // of the file: one that was put again is young again
	passing bool      // it has been a job's training state since it was written, or the result of a unit
}

// passingGrace is how long a blob stays that was a job's training state, or the result of a unit, once nothing refers
// to it any more. Nobody puts it again, or it would be young: the next state comes soon, and each is as
// large; and results of cells are many, and stand in blobs of many once their job is done.
const passingGrace = time.Minute

// seenBlobs is what a look knows of blobs, by digest: those that something refers to; of these, those that are
// jobs' training states or results of units; and those that were a training state since the last look and were
// replaced by another.
type seenBlobs struct {
	referenced map[string]bool
	passing    iter.Seq[string]
	replaced   map[string]bool
}

// look takes note of the blobs that are in the folder and forgets the others. written
// returns when a file was written by the wall clock, false where there is none; it is only
// called for blobs that are new here or that nothing refers to. One that was put again since the last look is
// kept long, though it was replaced: somebody may be about to refer to it.
func (a blobAges) look(now time.Time, here []string, seen seenBlobs, written func(digest string) (time.Time, bool)) {
	still := make(map[string]bool, len(here))
	for _, digest := range here {
		still[digest] = true
		age, known := a[digest]
		if known && seen.referenced[digest] {
			if age.passing {
				age.since = now
				a[digest] = age
			}
			continue
		}
		switch at, ok := written(digest); {
		case ok && (!known || !age.written.Equal(at)):
			a[digest] = blobAge{now, at, !known && seen.replaced[digest]}
		case known && seen.replaced[digest]:
			age.passing = true
			a[digest] = age
		}
	}
	for digest := range seen.passing {
		if age, known := a[digest]; known && !age.passing {
			age.since, age.passing = now, true
			a[digest] = age
		}
	}
	for digest := range a {
		if !still[digest] {
			delete(a, digest)
		}
	}
}

// reached reports whether a blob, as it was at the last look, is of age d or older; where it was
// passing, passingGrace since it was last referred to is enough.
func (a blobAges) reached(digest string, now time.Time, d time.Duration) bool {
	b, known := a[digest]
	if b.passing {
		d = min(d, passingGrace)
	}
	return known && now.Sub(b.since) >= d
}
