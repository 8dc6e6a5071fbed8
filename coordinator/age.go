package coordinator

import "time"

// blobAges tells how long ago blobs of the folder were written. Times are those of this
// process's monotonic clock: a wall clock that jumps deletes nothing, and after a start each
// blob is as young as the process.
type blobAges map[string]blobAge

type blobAge struct {
	since   time.Time
	written time.Time // of the file: one that was put again is young again
	state   bool      // it has been a job's training state since then
}

// stateGrace is how long a blob stays that was a job's training state, and that nothing refers to any more.
// Nobody puts it again, or it would be young: the next state comes soon, and each is as large.
const stateGrace = time.Minute

// seenBlobs is what a look knows of blobs, by digest: those that something refers to, of these those that are a
// job's training state, and those that were one since the last look and were replaced by another.
type seenBlobs struct{ referenced, states, replaced map[string]bool }

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
			age.state = age.state || seen.states[digest]
			a[digest] = age
			continue
		}
		switch at, ok := written(digest); {
		case ok && (!known || !age.written.Equal(at)):
			a[digest] = blobAge{now, at, seen.states[digest] || !known && seen.replaced[digest]}
		case known && seen.replaced[digest]:
			age.state = true
			a[digest] = age
		}
	}
	for digest := range a {
		if !still[digest] {
			delete(a, digest)
		}
	}
}

// reached reports whether a blob, as it was at the last look, is of age d or older; where it was a
// training state, stateGrace is enough.
func (a blobAges) reached(digest string, now time.Time, d time.Duration) bool {
	b, known := a[digest]
	if b.state {
		d = min(d, stateGrace)
	}
	return known && now.Sub(b.since) >= d
}
