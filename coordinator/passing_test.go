package coordinator

import (
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/protocol"
)

// passingNow lists what passes, as text.
func passingNow(s *state.State) (list []string) {
	for d := range passing(s) {
		list = append(list, d.String())
	}
	return list
}

// TestPassing: the result of a cell passes while its job runs; once the job is done nothing refers to it, and that
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
	m := &dataset.Manifest{Format: dataset.ManifestFormat, Rows: 20, Features: 3, Labels: 2, Shards: []dataset.ShardRef{{Digest: digest("d"), Rows: 20, Bytes: 400}}, LabelNames: []string{"a", "b"}}
	epoch := do(protocol.EntryLead, protocol.LeadEntry{Node: "a"}).(uint64)
	do(protocol.EntryDatasetPut, protocol.DatasetPutEntry{Name: "d", Manifest: m})
	e := protocol.ExperimentEntry{Name: "e"}
	for _, name := range []string{"x", "y"} {
		cells := &round.Cells{Rows: []round.CellRow{{Algorithm: "ldlf"}}, Repeats: 1, Folds: 3}
		e.Jobs = append(e.Jobs, protocol.SubmitEntry{Token: name, Name: name, Dataset: "d", Job: &round.Job{Algorithm: round.AlgorithmCells, Dataset: m.Digest(), Cells: cells}})
	}
	jobs := do(protocol.EntryExperiment, e).([]*state.Job)
	for i, j := range jobs {
		do(protocol.EntryJobState, protocol.JobStateEntry{Epoch: epoch, Job: j.ID, State: protocol.Running})
		do(protocol.EntryCollected, protocol.CollectedEntry{Epoch: epoch, Job: j.ID, Round: 1, Unit: 1, Of: 3, Digest: digest("12"[i : i+1])})
		do(protocol.EntryWithhold, protocol.WithholdEntry{Epoch: epoch, Job: j.ID, Round: 1, Units: []uint32{2}})
	}
	if got := passingNow(s); !slices.Equal(got, []string{digest("1"), digest("2")}) {
		t.Errorf("%v", got)
	}
	do(protocol.EntryFinish, protocol.FinishEntry{Epoch: epoch, Job: jobs[0].ID, Outcome: []byte("{}")})
	do(protocol.EntryCancel, protocol.CancelEntry{Job: jobs[1].ID})
	if got, refs := passingNow(s), s.References(); !slices.Equal(got, []string{digest("2")}) || refs.Has(digest("1")) || !refs.Has(digest("2")) {
		t.Errorf("%v, referenced: %v", got, refs)
	}
}
