package state

import (
	"errors"
	"testing"

	"github.com/coppice-ldl/coppice/protocol"
)

// TestExperiment: the jobs of an experiment are queued together with IDs that follow each other,
// once, and later jobs come after them.
func TestExperiment(t *testing.T) {
	m := newMachine(t)
	m.start()
	made := m.do(protocol.EntryExperiment, experimentEntry("t", "e", 5)).([]*Job)
	if len(made) != 5 {
		t.Fatalf("%d jobs", len(made))
	}
	for i, j := range made {
		if j.ID != made[0].ID+uint64(i) || j.Experiment != "e" || m.s.Job(j.ID) != j {
			t.Errorf("job %d is %v of %q", i, j, j.Experiment)
		}
	}
	if again := m.do(protocol.EntryExperiment, experimentEntry("t", "e", 5)).([]*Job); again[4] != made[4] || len(m.s.Jobs()) != 6 {
		t.Errorf("sent again it makes %d jobs", len(m.s.Jobs()))
	}
	later := m.submit("t2", "later", 9)
	if later.ID <= made[4].ID || later.Experiment != "" {
		t.Errorf("%v comes after %v", later, made[4])
	}
	gone := m.submit("t3", "gone", 9)
	m.do(protocol.EntryCancel, &protocol.CancelEntry{Job: gone.ID})
	m.do(protocol.EntryJobsDelete, &protocol.JobsDeleteEntry{Jobs: []uint64{gone.ID}})
	if next := m.submit("t4", "next", 9); next.ID <= gone.ID {
		t.Errorf("%v has the ID of a deleted job, or an earlier one", next)
	}
}

// TestExperimentRefused: all jobs of an experiment are queued, or none.
func TestExperimentRefused(t *testing.T) {
	m := newMachine(t)
	m.start()
	m.submit("x", "e.2", 7)
	bound := experimentEntry("t", "e", 2)
	for i := range bound.Jobs {
		bound.Jobs[i].MaxQueue = 3
	}
	plain := experimentEntry("t", "e", 2)
	plain.Jobs[1].Job.Cells = nil
	unknown := experimentEntry("t", "e", 2)
	unknown.Jobs[1].Dataset = "nothing"
	for name, c := range map[string]struct {
		entry *protocol.ExperimentEntry
		want  error
	}{
		"a name that is taken": {experimentEntry("t", "e", 3), ErrExists},
		"a full queue":         {bound, ErrQueue},
		"no cells":             {plain, ErrInvalid},
		"no such dataset":      {unknown, ErrNotFound},
		"no jobs":              {experimentEntry("t", "e", 0), ErrInvalid},
		"no name":              {experimentEntry("t", "", 1), ErrInvalid},
	} {
		if err := m.refused(protocol.EntryExperiment, c.entry); !errors.Is(err, c.want) || len(m.s.Jobs()) != 2 {
			t.Errorf("%s: %v, %d jobs", name, err, len(m.s.Jobs()))
		}
	}
}

// TestCellBlobs are kept as long as the job, and a finish with what is no blob is refused.
func TestCellBlobs(t *testing.T) {
	m := newMachine(t)
	m.start()
	j := m.do(protocol.EntryExperiment, experimentEntry("t", "e", 1)).([]*Job)[0]
	m.do(protocol.EntryJobState, &protocol.JobStateEntry{Epoch: m.s.Epoch(), Job: j.ID, State: protocol.Running})
	finish := &protocol.FinishEntry{Epoch: m.s.Epoch(), Job: j.ID, Outcome: []byte(`{}`), Cells: []protocol.CellsRef{{BlobRef: protocol.BlobRef{Blob: "no", Bytes: 7}, Count: 4}}}
	if err := m.refused(protocol.EntryFinish, finish); !errors.Is(err, ErrInvalid) {
		t.Errorf("error %v", err)
	}
	finish.Cells[0].Blob = digest('6')
	m.do(protocol.EntryFinish, finish)
	if !m.s.References()[digest('6')] {
		t.Error("the blob of cells may be deleted")
	}
	m.do(protocol.EntryJobsDelete, &protocol.JobsDeleteEntry{Jobs: []uint64{j.ID}})
	if m.s.References()[digest('6')] {
		t.Error("the blob of cells is kept without its job")
	}
}
