package state

import (
	"cmp"
	"maps"
	"slices"

	"github.com/coppice-ldl/coppice/internal/digests"
	"github.com/coppice-ldl/coppice/internal/wire"
	"github.com/coppice-ldl/coppice/protocol"
)

// MaxCondemned bounds the blobs that are marked for deletion. Beyond it the oldest marks
// are forgotten: they matter only to a coordinator that was away while that many others
// were marked.
const MaxCondemned = 1 << 16

// blobMarks has the blobs that are marked for deletion. None of them is referenced.
type blobMarks struct {
	condemned map[string]uint64 // the index of the entry that marked a digest
}

// Condemned returns the blobs that are marked for deletion, each with the index of the
// entry that marked it. None of them is referenced.
func (m *blobMarks) Condemned() map[string]uint64 { return m.condemned }

// keep removes the marks of blobs that are referenced now.
func (m *blobMarks) keep(digests ...string) {
	cloned := false
	for _, d := range digests {
		if _, ok := m.condemned[d]; !ok {
			continue
		}
		if !cloned {
			m.condemned, cloned = maps.Clone(m.condemned), true
		}
		delete(m.condemned, d)
	}
}

// condemn marks the blobs that nothing references. A blob that was marked before keeps its
// mark.
func condemn(s *State, e *protocol.CondemnEntry) (any, error) {
	for _, d := range e.Digests {
		if !isDigest(d) {
			return nil, invalid("%.80q is not a digest", d)
		}
	}
	refs := s.References()
	next := make(map[string]uint64, len(s.condemned)+len(e.Digests))
	maps.Copy(next, s.condemned)
	var marked []string
	for _, d := range e.Digests {
		if _, ok := next[d]; ok || refs.Has(d) {
			continue
		}
		next[d] = s.index
		marked = append(marked, d)
	}
	if over := len(next) - MaxCondemned; over > 0 {
		oldest := slices.SortedFunc(maps.Keys(next), func(a, b string) int { return cmp.Or(cmp.Compare(next[a], next[b]), cmp.Compare(a, b)) })
		for _, d := range oldest[:over] {
			delete(next, d)
		}
	}
	s.condemned = next
	return marked, nil
}

func markFields(c *wire.Coder, digest *string, index *uint64) {
	c.Text("digest", digest)
	wire.Numbers(c, "log index", index)
}

// References returns the digests of all blobs that must be kept, which datasets and jobs
// have. The set is the caller's.
func (s *State) References() digests.Set {
	parts := 0
	for _, j := range s.jobs {
		parts += j.gathered.n
	}
	refs := make(digests.Set, parts)
	for _, d := range s.datasets {
		for _, digest := range DatasetBlobs(d) {
			refs.Add(digest)
		}
	}
	for _, j := range s.jobs {
		j.references(refs)
	}
	return refs
}

// Unread removes from a set the blobs of the datasets and jobs that readable accepts. A job that failed or was cancelled still
// refers to its split and weights. If samples is false, the blobs of datasets stay in the set.
func (s *State) Unread(blobs digests.Set, samples bool, readable func(protocol.Ownership) bool) {
	texts := make(map[string]digests.Digest, len(blobs)) // to read a text takes longer than to find it
	for d := range blobs {
		texts[d.String()] = d
	}
	remove := func(text string) {
		if d, ok := texts[text]; ok {
			delete(blobs, d)
		}
	}
	for _, d := range s.datasets {
		if len(blobs) == 0 {
			return
		}
		if samples && readable(d.Ownership) {
			for _, digest := range DatasetBlobs(d) {
				remove(digest)
			}
		}
	}
	for _, j := range s.jobs {
		if len(blobs) == 0 {
			return
		}
		if readable(j.Ownership) {
			j.blobs(remove, func(d digests.Digest) { delete(blobs, d) })
			remove(j.Job.Split.Assigned)
			remove(j.Job.Weights)
		}
	}
}

// References returns the digests of the blobs of one job.
func (j *Job) References() digests.Set {
	refs := make(digests.Set)
	j.references(refs)
	return refs
}

func (j *Job) references(refs digests.Set) {
	j.blobs(refs.Add, func(d digests.Digest) { refs[d] = struct{}{} })
}

// blobs lists the blobs of one job, each as a text or as a digest. The shards of its dataset
// are the dataset's, which stays while the job needs it. A job that failed or was cancelled
// needs neither its split nor its weights.
func (j *Job) blobs(text func(string), digest func(digests.Digest)) {
	if j.State == protocol.Done || !j.State.Final() {
		text(j.Job.Split.Assigned)
		text(j.Job.Weights)
	}
	text(j.TrainerBlob)
	text(j.Outline)
	for p := range j.gathered.all {
		if p.WasRun() {
			digest(p.Digest)
		}
	}
	for i := range j.Models {
		text(j.Models[i].Blob)
	}
	for i := range j.Cells {
		text(j.Cells[i].Blob)
	}
	if j.Predictions != nil {
		text(j.Predictions.Blob)
	}
}

// Replaced lists blobs that were the training state of a job until its next one was
// committed. It has the newest ones that this process has seen. Snapshots do not have them,
// and no entry depends on them: they only say which blobs need not be kept for long.
type Replaced struct {
	last  []string // digests, the newest last
	count uint64   // of all there ever were
}

// maxReplaced bounds Replaced.last.
const maxReplaced = 1024

// Replaced returns the blobs of training states that were replaced.
func (s *State) Replaced() Replaced { return s.replaced }

// with returns the list with one more digest.
func (r Replaced) with(digest string) Replaced {
	from := max(0, len(r.last)+1-maxReplaced)
	return Replaced{slices.Concat(r.last[from:], []string{digest}), r.count + 1}
}

// Since lists the blobs that an earlier list does not count, if they are still known. It
// lists all if the earlier list is from before a snapshot was read.
func (r Replaced) Since(earlier Replaced) []string {
	n := r.count
	if r.count >= earlier.count {
		n -= earlier.count
	}
	return r.last[len(r.last)-int(min(n, uint64(len(r.last)))):]
}
