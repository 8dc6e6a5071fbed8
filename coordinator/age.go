package coordinator

import (
	"iter"
	"time"

	"github.com/coppice-ldl/coppice/internal/digests"
)

// blobAges tells how long ago blobs of the folder were written. Times are those of this
// process's monotonic clock: a wall clock that jumps deletes nothing, and after a start each
// blob is as young as the process. There may be hundreds of thousands of blobs, so each takes some 60 bytes.
type blobAges struct {
	began time.Time // of the first look
	looks uint32
	of    map[digests.Digest]blobAge
}

type blobAge struct {
	since   time.Duration // after began
	written int64         // of the file, Unix nanoseconds: one that was put again is young again
	look    uint32        // when it was there last
	passing bool          // it has been a job's training state since it was written, or the result of a unit
}

func newBlobAges() *blobAges { return &blobAges{of: make(map[digests.Digest]blobAge)} }

// passingGrace is how long a blob stays that was a job's training state, or the result of a unit, once nothing refers
// to it any more. Nobody puts it again, or it would be young: the next state comes soon, and each is as
// large; and results of cells are many, and stand in blobs of many once their job is done.
const passingGrace = time.Minute

// seenBlobs is what a look knows of blobs: those that something refers to; of these, those that are
// jobs' training states or results of units; and those that were a training state since the last look and were
// replaced by another.
type seenBlobs struct {
	referenced digests.Set
	passing    iter.Seq[digests.Digest]
	replaced   digests.Set
}

// look takes note of the blobs that are in the folder, which here calls its argument with, and forgets the others. written
// returns when a file was written by the wall clock, false where there is none; it is only
// called for blobs that are new here or that nothing refers to. One that was put again since the last look is
// kept long, though it was replaced: somebody may be about to refer to it. Where here fails, none is forgotten.
func (a *blobAges) look(now time.Time, here func(func(digests.Digest)) error, seen seenBlobs, written func(digests.Digest) (time.Time, bool)) error {
	if a.looks++; a.looks == 1 {
		a.began = now
	}
	since := now.Sub(a.began)
	err := here(func(d digests.Digest) {
		if age, ok := a.seen(d, since, seen, written); ok {
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

// seen returns the age of a blob that is in the folder; false: it is gone meanwhile.
func (a *blobAges) seen(d digests.Digest, now time.Duration, seen seenBlobs, written func(digests.Digest) (time.Time, bool)) (age blobAge, ok bool) {
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

// reached reports whether a blob, as it was at the last look, is of age d or older; where it was
// passing, passingGrace since it was last referred to is enough.
func (a *blobAges) reached(blob digests.Digest, now time.Time, d time.Duration) bool {
	b, known := a.of[blob]
	if b.passing {
		d = min(d, passingGrace)
	}
	return known && now.Sub(a.began)-b.since >= d
}

// unchanged reports whether a blob's file is the one of the last look.
func (a *blobAges) unchanged(blob digests.Digest, written time.Time) bool {
	b, known := a.of[blob]
	return known && b.written == written.UnixNano()
}
