package retention

import (
	"iter"
	"time"

	"github.com/coppice-ldl/coppice/internal/digests"
)

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
func (a *blobAges) look(now time.Time, list func(func(digests.Digest)) error, seen seenBlobs, written func(digests.Digest) (time.Time, bool)) error {
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
func (a *blobAges) next(d digests.Digest, now time.Duration, seen seenBlobs, written func(digests.Digest) (time.Time, bool)) (age blobAge, ok bool) {
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

// unchanged reports whether a blob's file is still the file of the last look.
func (a *blobAges) unchanged(blob digests.Digest, written time.Time) bool {
	b, known := a.of[blob]
	return known && b.written == written.UnixNano()
}
