package coordinator

import "time"

// idleBlobs tells for how long blobs of the folder were referred to by nothing. Times are
// those of this process's monotonic clock: a wall clock that jumps deletes nothing, and
// after a start each blob is as young as the process.
type idleBlobs map[string]idleBlob

type idleBlob struct {
	since   time.Time
	written time.Time // of the file: one that was put again is young again
}

// look takes note of the blobs that are in the folder, with the times of their files,
// and are referred to by nothing. It forgets the others.
func (i idleBlobs) look(now time.Time, unreferenced map[string]time.Time) {
	for digest := range i {
		if _, still := unreferenced[digest]; !still {
			delete(i, digest)
		}
	}
	for digest, written := range unreferenced {
		if b, known := i[digest]; !known || !b.written.Equal(written) {
			i[digest] = idleBlob{now, written}
		}
	}
}

// longer reports whether a blob was referred to by nothing for d or longer, at the last
// look and before.
func (i idleBlobs) longer(digest string, now time.Time, d time.Duration) bool {
	b, known := i[digest]
	return known && now.Sub(b.since) >= d
}
