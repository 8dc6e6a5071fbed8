package state

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-ldl/coppice/protocol"
)

// outcomeOf is an outcome with a K-L divergence over some rows.
func outcomeOf(rows string, kl float64) string {
	return fmt.Sprintf(`{"evaluated_on":%q,"measures":{"kl":{"mean":%v,"std":0}},"loss":9}`, rows, kl)
}

// finished submits a job and finishes it, with a model, its split, groups, weights and predictions.
func (m *machine) finished(token, name string) *Job {
	m.t.Helper()
	e := submitEntry(token, name, 7)
	e.Job.Split.Assigned, e.Job.Weights, e.Job.Split.Groups = digest('5'), digest('6'), digest('8')
	j := m.do(protocol.EntrySubmit, e).(*Job)
	m.do(protocol.EntryJobState, &protocol.JobStateEntry{Epoch: m.s.Epoch(), Job: j.ID, State: protocol.Running, Time: 3})
	return m.do(protocol.EntryFinish, &protocol.FinishEntry{
		Epoch: m.s.Epoch(), Job: j.ID, Outcome: []byte(outcomeOf("test samples", 0.5)), Time: 9,
		Models:      []protocol.ModelRef{{Digest: digest('1'), Blob: digest('2'), Bytes: 3}},
		Predictions: &protocol.BlobRef{Blob: digest('3'), Bytes: 4},
	}).(*Job)
}

func deletion(ids ...uint64) *protocol.JobsDeleteEntry {
	return &protocol.JobsDeleteEntry{Jobs: ids, Time: 20}
}

// TestDeleteJobs: a deleted job leaves its number, its name and its token, and nothing
// else.
func TestDeleteJobs(t *testing.T) {
	m := newMachine(t)
	m.start()
	j, other := m.finished("t2", "mine"), m.finished("t3", "other")
	gone := m.do(protocol.EntryJobsDelete, deletion(j.ID, 1<<40, j.ID)).([]*Job)
	if len(gone) != 1 || gone[0] != j || m.s.Job(j.ID) != nil || m.s.JobByName("mine") != nil ||
		m.s.JobByToken("t2") != nil {
		t.Fatalf("deleted: %v", gone)
	}
	want := &DeletedJob{ID: j.ID, Name: "mine", Token: "t2", Time: 20}
	if diff := cmp.Diff(want, m.s.Deleted(j.ID)); diff != "" || m.s.DeletedByName("mine") != m.s.Deleted(j.ID) ||
		m.s.DeletedByToken("t2") != m.s.Deleted(j.ID) {
		t.Error(diff)
	}
	again := m.do(protocol.EntryJobsDelete, deletion(j.ID)).([]*Job)
	if d := m.s.Deleted(j.ID); len(again) != 0 || d.Time != 20 {
		t.Errorf("deleted again: %v, %+v", again, d)
	}
	if m.s.Job(other.ID) != other {
		t.Error("another job went as well")
	}
	err := m.refused(protocol.EntrySubmit, submitEntry("t2", "mine", 7))
	if !errors.Is(err, ErrDeleted) || !strings.Contains(err.Error(),
		fmt.Sprintf("this submission made job %d (mine), which was deleted", j.ID)) {
		t.Errorf("the same submission again: %v", err)
	}
	for kind, body := range fencedEntries(m.s.Epoch(), j.ID) {
		if err := m.refused(kind, body); !errors.Is(err, ErrDeleted) || !strings.Contains(err.Error(), "(mine) was deleted") {
			t.Errorf("kind %d for it: %v", kind, err)
		}
	}
	anew := m.submit("t4", "mine", 8)
	if m.s.JobByName("mine") != anew || anew.State != protocol.Queued {
		t.Errorf("its name means %v", m.s.JobByName("mine"))
	}
	if got := m.s.DeletedByName("ldlf-1"); got != nil {
		t.Errorf("by another name: %v", got)
	}
}

// TestDeleteRefusesWhatRuns: an error names the jobs that have not ended, and nothing is
// deleted.
func TestDeleteRefusesWhatRuns(t *testing.T) {
	m := newMachine(t)
	running := m.start()
	done := m.finished("t2", "mine")
	queued, paused := m.submit("t3", "waits", 2), m.submit("t4", "rests", 3)
	m.do(protocol.EntryPause, &protocol.JobEntry{Job: paused.ID})
	for _, j := range []*Job{running, queued, paused} {
		err := m.refused(protocol.EntryJobsDelete, deletion(done.ID, j.ID))
		if !errors.Is(err, ErrNotEnded) || !strings.Contains(err.Error(), fmt.Sprintf("%v is %s", m.s.Job(j.ID),
			m.s.Job(j.ID).State)) || strings.Contains(err.Error(), "mine") {
			t.Errorf("%v: %v", j, err)
		}
	}
	all := deletion()
	for i := range uint64(30) {
		all.Jobs = append(all.Jobs, m.submit(fmt.Sprint("many", i), "", 100+i).ID)
	}
	if err := m.refused(protocol.EntryJobsDelete, all); !strings.Contains(err.Error(), " and 20 more;") {
		t.Errorf("thirty jobs: %v", err)
	}
	if err := m.refused(protocol.EntryJobsDelete, deletion(all.Jobs[:maxNamed]...)); strings.Count(err.Error(),
		" is queued") != maxNamed || strings.Contains(err.Error(), "more") {
		t.Errorf("as many jobs as are named: %v", err)
	}
	if err := m.refused(protocol.EntryJobsDelete, deletion(all.Jobs[:maxNamed+1]...)); strings.Count(err.Error(),
		" is queued") != maxNamed || !strings.Contains(err.Error(), " and 1 more;") {
		t.Errorf("one job beyond those that are named: %v", err)
	}
	for _, n := range []int{0, protocol.MaxDelete + 1} {
		if err := m.refused(protocol.EntryJobsDelete, deletion(make([]uint64, n)...)); !errors.Is(err, ErrInvalid) {
			t.Errorf("%d jobs in one entry: %v", n, err)
		}
	}
}

// TestDeletedJobsReferToNothing: a blob that only a deleted job referred to can be deleted,
// and so can its dataset.
func TestDeletedJobsReferToNothing(t *testing.T) {
	m := newMachine(t)
	running := m.start()
	j := m.finished("t2", "mine")
	// model, predictions, split, weights, groups
	of := []string{digest('2'), digest('3'), digest('5'), digest('6'), digest('8')}
	for _, d := range of {
		if !m.s.References().Has(d) {
			t.Fatalf("%.1s is not referenced", d)
		}
	}
	m.do(protocol.EntryModelDelete, &protocol.JobEntry{Job: j.ID, Time: 11})
	refs := m.s.References()
	if refs.Has(of[0]) || !refs.Has(of[1]) || !refs.Has(of[2]) || !refs.Has(of[3]) || !refs.Has(of[4]) {
		t.Errorf("without its model the job refers to %v", refs)
	}
	m.do(protocol.EntryJobsDelete, deletion(j.ID))
	refs = m.s.References()
	for _, d := range of {
		if refs.Has(d) {
			t.Errorf("%.1s is still referenced", d)
		}
	}
	if marked := m.do(protocol.EntryCondemn, &protocol.CondemnEntry{Digests: of}).([]string); len(marked) != len(of) {
		t.Errorf("%d are marked", len(marked))
	}
	m.do(protocol.EntryCancel, &protocol.JobEntry{Job: running.ID})
	m.do(protocol.EntryJobsDelete, deletion(running.ID))
	m.do(protocol.EntryDatasetDelete, &protocol.DatasetDeleteEntry{Name: "yeast"})
	if refs := m.s.References(); len(refs) != 0 {
		t.Errorf("in the end %v are referenced", refs)
	}
}

// TestDeleteModel: a job without its model keeps its result and its name.
func TestDeleteModel(t *testing.T) {
	m := newMachine(t)
	running := m.start()
	j := m.finished("t2", "mine")
	for at := int64(11); at < 13; at++ {
		got := m.do(protocol.EntryModelDelete, &protocol.JobEntry{Job: j.ID, Time: at}).(*Job)
		info := got.Info()
		if len(got.Models) > 0 || got.State != protocol.Done || info.ModelDeleted != 11 || len(info.Outcome) == 0 ||
			info.Predictions == nil {
			t.Errorf("without its model: %+v", info)
		}
		if info.Measures["kl"] != 0.5 || info.EvaluatedOn != "test samples" {
			t.Errorf("its measures: %v of %s", info.Measures, info.EvaluatedOn)
		}
	}
	if err := m.refused(protocol.EntrySubmit, submitEntry("t9", "mine", 1)); !errors.Is(err, ErrExists) {
		t.Errorf("its name is free: %v", err)
	}
	if err := m.refused(protocol.EntryModelDelete, &protocol.JobEntry{Job: running.ID}); !errors.Is(err, ErrNotEnded) {
		t.Errorf("of a job that runs: %v", err)
	}
	m.do(protocol.EntryCancel, &protocol.JobEntry{Job: running.ID})
	if err := m.refused(protocol.EntryModelDelete, &protocol.JobEntry{Job: running.ID}); !errors.Is(err, ErrNoModel) {
		t.Errorf("of a cancelled job: %v", err)
	}
	m.do(protocol.EntryJobsDelete, deletion(j.ID))
	if err := m.refused(protocol.EntryModelDelete, &protocol.JobEntry{Job: j.ID}); !errors.Is(err, ErrDeleted) {
		t.Errorf("of a deleted job: %v", err)
	}
	if err := m.refused(protocol.EntryModelDelete, &protocol.JobEntry{Job: 1 << 40}); !errors.Is(err, ErrNotFound) {
		t.Errorf("of no job: %v", err)
	}
}

// TestDeletedIsBounded: only the deleted jobs that were submitted last are remembered.
func TestDeletedIsBounded(t *testing.T) {
	m := newMachine(t)
	m.start()
	first := m.finished("t2", "first")
	for i := range uint64(MaxDeleted) { // as if they had been
		m.s.deleted = append(m.s.deleted, &DeletedJob{ID: 1000 + i, Name: "many", Token: fmt.Sprint("many", i)})
	}
	m.index = 1000 + MaxDeleted
	last := m.finished("t3", "last")
	m.do(protocol.EntryJobsDelete, deletion(first.ID, last.ID))
	if n := len(m.s.deleted); n != MaxDeleted || m.s.Deleted(first.ID) != nil || m.s.Deleted(1000) != nil ||
		m.s.Deleted(last.ID) == nil || m.s.Deleted(1001) == nil {
		t.Errorf("%d are remembered; the last: %v", n, m.s.Deleted(last.ID))
	}
	if again := decode(t, encode(t, m.s)); len(again.deleted) != MaxDeleted || again.DeletedByToken("t3") == nil {
		t.Errorf("%d after a snapshot", len(again.deleted))
	}
}

// TestMeasure: a job has the measures of its outcome, or none.
func TestMeasure(t *testing.T) {
	for outcome, want := range map[string]string{
		outcomeOf("test samples", 0.5):      "0.5 true true",
		outcomeOf("training samples", 0.25): "0.25 false true",
		`{"measures":{"kl":{"mean":null}}}`: "NaN false false",
		`{"loss":1}`:                        "0 false false",
		`{"measures":3}`:                    "0 false false",
		``:                                  "0 false false",
		`{"measures":{"cosine":{"mean":1}},"evaluated_on":"rows"}`: "NaN false false",
	} {
		j := &Job{Results: Results{summary: summarize([]byte(outcome))}}
		if got := fmt.Sprint(j.Measure("kl")); got != want {
			t.Errorf("%s: %s, want %s", outcome, got, want)
		}
		for name, v := range j.Info().Measures {
			if v-v != 0 {
				t.Errorf("%s: %s is %v", outcome, name, v)
			}
		}
	}
}
