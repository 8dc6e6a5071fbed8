package coordinator

import "time"

// blobAges tells how long ago blobs of the folder were written. Times are those of this
// process's monotonic clock: a wall clock that jumps deletes nothing, and after a start each
// blob is as young as the process.
type blobAges map[string]blobAge

type blobAge struct {
	since   time.Time
	written time.Time // of the file: one that was put again is young again
}

// look takes note of the blobs that are in the folder and forgets the others. written
// returns when a file was written by the wall clock, false where there is none; it is only
// called for blobs that are new here or that nothing refers to.
func (a blobAges) look(now time.Time, here []string, referenced map[string]bool, written func(digest string) (time.Time, bool)) {
	still := make(map[string]bool, len(here))
	for _, digest := range here {
		still[digest] = true
		age, known := a[digest]
		if known && referenced[digest] {
			continue
		}
		at, ok := written(digest)
		if ok && (!known || !age.written.Equal(at)) {
			a[digest] = blobAge{now, at}
		}
	}
	for digest := range a {
		if !still[digest] {
			delete(a, digest)
		}
	}
}

// reached reports whether a blob, as it was at the last look, is of age d or older.
func (a blobAges) reached(digest string, now time.Time, d time.Duration) bool {
	b, known := a[digest]
	return known && now.Sub(b.since) >= d
}
