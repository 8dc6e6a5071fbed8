package state

import (
	"cmp"
	"maps"
	"slices"

	"github.com/coppice-ldl/coppice/protocol"
)

// MaxCondemned bounds the blobs that are marked for deletion; beyond it the
// oldest marks are forgotten. They matter only to a coordinator that was away
// while that many others were marked.
const MaxCondemned = 1 << 16

// digestLength is that of a SHA-256 in hex.
const digestLength = 64

// isDigest reports whether text is a SHA-256 in lower-case hex.
func isDigest(text string) bool {
	if len(text) != digestLength {
		return false
	}
	for i := range len(text) {
		if c := text[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// References returns the digests of all blobs that must be kept: the shards and groups of
// datasets, the splits and weights that jobs were given, and what jobs have: collected parts,
// a trainer state, models, predictions, the outlines of experiments. The map is the caller's.
func (s *State) References() map[string]bool {
	refs := make(map[string]bool)
	for _, d := range s.datasets {
		for i := range d.Manifest.Shards {
			refs[d.Manifest.Shards[i].Digest] = true
		}
		if g := d.Manifest.Groups; g != nil {
			refs[g.Digest] = true
		}
	}
	for _, j := range s.jobs {
		j.references(refs)
	}
	delete(refs, "")
	return refs
}

// references adds the blobs of one job. The shards of its dataset are the
// dataset's: it cannot be deleted while the job needs it. A failed or cancelled
// job keeps the results of its cells alone, and a done one its split and weights also without
// its models.
func (j *Job) references(refs map[string]bool) {
	if j.State == protocol.Done || !j.State.Final() {
		refs[j.Job.Split.Assigned], refs[j.Job.Weights] = true, true
	}
	refs[j.TrainerBlob] = true
	refs[j.Outline] = true
	for p := range j.collected.all {
		refs[p.Digest] = true
	}
	for i := range j.Models {
		refs[j.Models[i].Blob] = true
	}
	for i := range j.Cells {
		refs[j.Cells[i].Blob] = true
	}
	if j.Predictions != nil {
		refs[j.Predictions.Blob] = true
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
