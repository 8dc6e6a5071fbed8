package coordinator

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/protocol"
)

// Of the ended jobs those that ended last stay, and as many as are to be kept; what has not ended
// is never listed. An experiment goes as a whole, once all of its jobs have ended, or stays.
func TestSurplus(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var jobs []*state.Job
		type lot struct {
			ids   []uint64
			ended uint64
			live  bool
		}
		lots := make(map[string]*lot)
		order := rapid.Permutation([]uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30}).Draw(t, "order")
		for i := range rapid.IntRange(0, 30).Draw(t, "jobs") {
			j := &state.Job{ID: uint64(i + 1), State: rapid.SampledFrom(protocol.JobStates).Draw(t, "state")}
			if j.State.Final() {
				j.Ended = rapid.Int64Range(1, 5).Draw(t, "by some clock")
				j.EndIndex = order[i]
			}
			j.Experiment = rapid.SampledFrom([]string{"", "", "a", "b", "c", "d"}).Draw(t, "experiment")
			name := cmp.Or(j.Experiment, fmt.Sprint(j.ID))
			if lots[name] == nil {
				lots[name] = new(lot)
			}
			l := lots[name]
			l.ids, l.ended, l.live = append(l.ids, j.ID), max(l.ended, j.EndIndex), l.live || !j.State.Final()
			jobs = append(jobs, j)
		}
		keep := rapid.IntRange(1, 10).Draw(t, "keep")
		gone := surplus(jobs, keep)
		ended, went := 0, 0
		for _, l := range lots {
			n := 0
			for _, id := range l.ids {
				if slices.Contains(gone, id) {
					n++
				}
			}
			if n != 0 && n != len(l.ids) || n > 0 && l.live {
				t.Fatalf("of the jobs %v, which go together, %d go; one has not ended: %v", l.ids, n, l.live)
			}
			if l.live {
				continue
			}
			if ended++; n == 0 {
				continue
			}
			went++
			for _, other := range lots {
				if !other.live && other.ended < l.ended && !slices.Contains(gone, other.ids[0]) {
					t.Fatalf("the jobs %v, which ended at %d, go, and %v, which ended at %d, stay", l.ids, l.ended, other.ids, other.ended)
				}
			}
		}
		if went != max(0, ended-keep) {
			t.Fatalf("%d of %d go, %d are to stay", went, ended, keep)
		}
	})
}
