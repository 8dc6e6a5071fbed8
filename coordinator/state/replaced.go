package state

import "slices"

// Replaced are the blobs that were a job's training state until its next one was committed: the last of them, as far as
// this process applied the entries. Snapshots do not have them, and no entry's outcome depends on them: they say
// which blobs need not be kept for long.
type Replaced struct {
	last  []string // digests, the newest last
	count uint64   // of all there ever were
}

// maxReplaced bounds those that are known.
const maxReplaced = 1024

// Replaced returns the blobs of training states that were replaced.
func (s *State) Replaced() Replaced { return s.replaced }

// with returns the list with one more.
func (r Replaced) with(digest string) Replaced {
	from := max(0, len(r.last)+1-maxReplaced)
	return Replaced{slices.Concat(r.last[from:], []string{digest}), r.count + 1}
}

// Since lists those that an earlier list does not count, as far as they are known: all of them where that is of before a
// snapshot was read.
func (r Replaced) Since(earlier Replaced) []string {
	n := r.count
	if r.count >= earlier.count {
		n -= earlier.count
	}
	return r.last[len(r.last)-int(min(n, uint64(len(r.last)))):]
}
