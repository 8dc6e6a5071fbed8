package coordinator

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/protocol"
)

// Of the ended jobs those that ended last stay, and as many as are to be kept; what
// has not ended is never listed.
func TestSurplus(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var jobs []*state.Job
		ended := 0
		order := rapid.Permutation([]uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30}).Draw(t, "order")
		for i := range rapid.IntRange(0, 30).Draw(t, "jobs") {
			j := &state.Job{ID: uint64(i + 1), State: rapid.SampledFrom(protocol.JobStates).Draw(t, "state")}
			if j.State.Final() {
				j.Ended = rapid.Int64Range(1, 5).Draw(t, "by some clock")
				j.EndIndex = order[i]
				ended++
			}
			jobs = append(jobs, j)
		}
		keep := rapid.IntRange(1, 10).Draw(t, "keep")
		gone := surplus(jobs, keep)
		if len(gone) != max(0, ended-keep) {
			t.Fatalf("%d of %d go, %d are to stay", len(gone), ended, keep)
		}
		for _, j := range jobs {
			for _, id := range gone {
				other := jobs[id-1]
				if !other.State.Final() || !slices.Contains(gone, j.ID) && j.State.Final() && j.EndIndex < other.EndIndex {
					t.Fatalf("job %d, %s at index %d, goes, and job %d, %s at %d, stays", id, other.State, other.EndIndex, j.ID, j.State, j.EndIndex)
				}
			}
		}
	})
}
