package state

import (
	"cmp"
	"maps"
	"slices"

	"github.com/coppice-ldl/coppice/internal/digests"
	"github.com/coppice-ldl/coppice/protocol"
)

// MaxCondemned bounds the blobs that are marked for deletion; beyond it the
// oldest marks are forgotten. They matter only to a coordinator that was away
// while that many others were marked.
const MaxCondemned = 1 << 16

// isDigest reports whether text is a SHA-256 in lower-case hex.
func isDigest(text string) bool {
	_, ok := digests.Parse(text)
	return ok
}

// References returns the digests of all blobs that must be kept: the shards and groups of
// datasets, the splits and weights that jobs were given, and what jobs have: collected parts,
// a trainer state, models, predictions, the outlines of experiments. The set is the caller's.
func (s *State) References() digests.Set {
	parts := 0
	for _, j := range s.jobs {
		parts += j.collected.len()
	}
	refs := make(digests.Set, parts)
	for _, d := range s.datasets {
		DatasetBlobs(d, refs)
	}
	for _, j := range s.jobs {
		j.references(refs)
	}
	return refs
}

// DatasetBlobs adds the blobs of a dataset.
func DatasetBlobs(d *protocol.Dataset, refs digests.Set) {
	for i := range d.Manifest.Shards {
		refs.Add(d.Manifest.Shards[i].Digest)
	}
	if g := d.Manifest.Groups; g != nil {
		refs.Add(g.Digest)
	}
}

// References returns the digests of the blobs that one job has.
func (j *Job) References() digests.Set {
	refs := make(digests.Set)
	j.references(refs)
	return refs
}

// references adds the blobs of one job. The shards of its dataset are the
// dataset's: it cannot be deleted while the job needs it. A failed or cancelled
// job keeps the results of its cells alone, and a done one its split and weights also without
// its models.
func (j *Job) references(refs digests.Set) {
	if j.State == protocol.Done || !j.State.Final() {
		refs.Add(j.Job.Split.Assigned)
		refs.Add(j.Job.Weights)
	}
	refs.Add(j.TrainerBlob)
	refs.Add(j.Outline)
	for p := range j.collected.all {
		if p.WasRun() {
			refs[p.Digest] = struct{}{}
		}
	}
	for i := range j.Models {
		refs.Add(j.Models[i].Blob)
	}
	for i := range j.Cells {
		refs.Add(j.Cells[i].Blob)
	}
	if j.Predictions != nil {
		refs.Add(j.Predictions.Blob)
	}
}

// keep takes blobs that have just been referenced off the list of the condemned.
func (s *State) keep(digests ...string) {
	cloned := false
	for _, d := range digests {
		if _, ok := s.condemned[d]; !ok {
			continue
		}
		if !cloned {
			s.condemned, cloned = maps.Clone(s.condemned), true
		}
		delete(s.condemned, d)
	}
}

// trim forgets the oldest marks beyond MaxCondemned; s.condemned is its own copy.
func (s *State) trim() {
	over := len(s.condemned) - MaxCondemned
	if over <= 0 {
		return
	}
	keys := sortedKeys(s.condemned)
	slices.SortStableFunc(keys, func(a, b string) int { return cmp.Compare(s.condemned[a], s.condemned[b]) })
	for _, d := range keys[:over] {
		delete(s.condemned, d)
	}
}
