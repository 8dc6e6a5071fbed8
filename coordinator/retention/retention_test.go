package retention

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/protocol"
)

// TestSurplus: the given number of ended jobs stay, the last to end. A job that has not
// ended is never listed. An experiment is listed as a whole, once all of its jobs have
// ended, or not at all.
func TestSurplus(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var jobs []*state.Job
		type lot struct {
			ids   []uint64
			ended uint64
			live  bool
		}
		lots := make(map[string]*lot)
		order := rapid.Permutation([]uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23,
			24, 25, 26, 27, 28, 29, 30}).Draw(t, "order")
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
					t.Fatalf("the jobs %v, which ended at %d, go, and %v, which ended at %d, stay", l.ids, l.ended, other.ids,
						other.ended)
				}
			}
		}
		if went != max(0, ended-keep) {
			t.Fatalf("%d of %d go, %d are to stay", went, ended, keep)
		}
	})
}

// The greatest entry that condemns blobs is below what one entry may have.
func TestCondemnIsBounded(t *testing.T) {
	digests := make([]string, condemnedAtOnce)
	for i := range digests {
		digests[i] = blobs.Sum([]byte{byte(i), byte(i >> 8)})
	}
	if n := len(protocol.EncodeEntry(protocol.EntryCondemn,
		protocol.CondemnEntry{Digests: digests})); n > protocol.CommitChunk {
		t.Errorf("%d bytes, at most %d are good", n, protocol.CommitChunk)
	}
}

// passingNow lists what passes, as text.
func passingNow(s *state.State) (list []string) {
	for d := range passing(s) {
		list = append(list, d.String())
	}
	return list
}

// TestPassing: the result of a run passes while its job runs; once the job is done nothing refers to it, and that
// of a job that was cancelled stays.
func TestPassing(t *testing.T) {
	digest := func(c string) string { return strings.Repeat(c, 64) }
	s, index := state.New(), uint64(0)
	do := func(kind protocol.EntryKind, body any) any {
		t.Helper()
		index++
		var r state.Result
		if s, r = s.Apply(index, protocol.EncodeEntry(kind, body)); r.Err != nil {
			t.Fatal(r.Err)
		}
		return r.Value
	}
	m := &dataset.Manifest{Format: dataset.ManifestFormat, Rows: 20, Features: 3, Labels: 2,
		Shards: []dataset.ShardRef{{Digest: digest("d"), Rows: 20, Bytes: 400}}, LabelNames: []string{"a", "b"}}
	epoch := do(protocol.EntryLead, protocol.LeadEntry{Node: "a"}).(uint64)
	do(protocol.EntryDatasetPut, protocol.DatasetPutEntry{Name: "d", Manifest: m})
	e := protocol.ExperimentEntry{Name: "e"}
	for _, name := range []string{"x", "y"} {
		cells := &round.Cells{Rows: []round.CellRow{{Algorithm: "ldlf"}}, Repeats: 1, Folds: 3}
		e.Jobs = append(e.Jobs, protocol.SubmitEntry{Token: name, Name: name, Dataset: "d",
			Job: &round.Job{Algorithm: round.AlgorithmCells, Dataset: m.Digest(), Cells: cells}})
	}
	jobs := do(protocol.EntryExperiment, e).([]*state.Job)
	for i, j := range jobs {
		do(protocol.EntryJobState, protocol.JobStateEntry{Epoch: epoch, Job: j.ID, State: protocol.Running})
		do(protocol.EntryResult, protocol.ResultEntry{Epoch: epoch, Job: j.ID, Round: 1, Task: 1, Of: 3,
			Digest: digest("12"[i : i+1])})
		do(protocol.EntryWithhold, protocol.WithholdEntry{Epoch: epoch, Job: j.ID, Round: 1, Tasks: []uint32{2}})
	}
	if got := passingNow(s); !slices.Equal(got, []string{digest("1"), digest("2")}) {
		t.Errorf("%v", got)
	}
	do(protocol.EntryFinish, protocol.FinishEntry{Epoch: epoch, Job: jobs[0].ID, Outcome: []byte("{}")})
	do(protocol.EntryCancel, protocol.JobEntry{Job: jobs[1].ID})
	if got, refs := passingNow(s), s.References(); !slices.Equal(got, []string{digest("2")}) || refs.Has(digest("1")) ||
		!refs.Has(digest("2")) {
		t.Errorf("%v, referenced: %v", got, refs)
	}
}
