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

// look takes note of the blobs that are in the folder and forgets the others. states are those that are a
// job's training state. written
// returns when a file was written by the wall clock, false where there is none; it is only
// called for blobs that are new here or that nothing refers to.
func (a blobAges) look(now time.Time, here []string, referenced, states map[string]bool, written func(digest string) (time.Time, bool)) {
	still := make(map[string]bool, len(here))
	for _, digest := range here {
		still[digest] = true
		age, known := a[digest]
		if known && referenced[digest] {
			age.state = age.state || states[digest]
			a[digest] = age
			continue
		}
		at, ok := written(digest)
		if ok && (!known || !age.written.Equal(at)) {
			a[digest] = blobAge{now, at, states[digest]}
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
