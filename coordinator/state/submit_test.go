package state

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/protocol"
)

// TestExperiment: the jobs of an experiment are queued together with IDs that follow each
// other, once, and later jobs come after them.
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
	if again := m.do(protocol.EntryExperiment, experimentEntry("t", "e", 5)).([]*Job); again[4] != made[4] ||
		len(m.s.Jobs()) != 6 {
		t.Errorf("sent again it makes %d jobs", len(m.s.Jobs()))
	}
	later := m.submit("t2", "later", 9)
	if later.ID <= made[4].ID || later.Experiment != "" {
		t.Errorf("%v comes after %v", later, made[4])
	}
	gone := m.submit("t3", "gone", 9)
	m.do(protocol.EntryCancel, &protocol.JobEntry{Job: gone.ID})
	m.do(protocol.EntryJobsDelete, &protocol.JobsDeleteEntry{Jobs: []uint64{gone.ID}})
	if next := m.submit("t4", "next", 9); next.ID <= gone.ID {
		t.Errorf("%v has the ID of a deleted job, or an earlier one", next)
	}
	made = m.do(protocol.EntryExperiment, experimentEntry("t5", "f", 50)).([]*Job)
	last := made[len(made)-1] // its ID is beyond the index of the entries that follow
	m.do(protocol.EntryCancel, &protocol.JobEntry{Job: last.ID})
	m.do(protocol.EntryJobsDelete, &protocol.JobsDeleteEntry{Jobs: []uint64{last.ID}})
	if next := m.submit("t6", "last", 9); m.index >= last.ID || next.ID <= last.ID {
		t.Errorf("%v has the ID of the deleted %v, or an earlier one", next, last)
	}
}

// TestSizeOfCells: a run that has ended takes 73 bytes of a snapshot while its job runs,
// less than 300 of the log, and nothing of its own once the job is done; a method takes 24.
func TestSizeOfCells(t *testing.T) {
	const cells = 2000
	m := newMachine(t)
	m.start()
	j := m.do(protocol.EntryExperiment, experimentEntry("t", "e", 1)).([]*Job)[0]
	m.do(protocol.EntryJobState, &protocol.JobStateEntry{Epoch: m.s.Epoch(), Job: j.ID, State: protocol.Running})
	before := len(encode(t, m.s))
	for u := range uint32(cells) {
		e := &protocol.ResultEntry{Epoch: m.s.Epoch(), Job: j.ID, Round: 1, Task: u * 7 % cells, Of: cells,
			Digest: digest('1'), Bytes: 3000, Compute: 123456789}
		if n := len(encodeEntry(protocol.EntryResult, e)); n > 300 {
			t.Fatalf("an entry of %d bytes", n)
		}
		m.do(protocol.EntryResult, e)
	}
	if n := len(encode(t, m.s)) - before; n != 73*cells+24 {
		t.Errorf("%d bytes of %d cells", n, cells)
	}
	m.do(protocol.EntryFinish, &protocol.FinishEntry{Epoch: m.s.Epoch(), Job: j.ID, Outcome: []byte(`{}`),
		Cells: []protocol.CellsRef{
			{BlobRef: protocol.BlobRef{Blob: digest('6')}, Count: 1000}, {BlobRef: protocol.BlobRef{Blob: digest('7')},
				Count: 1000},
		}})
	if n := len(encode(t, m.s)) - before; n > 1000 {
		t.Errorf("%d bytes of %d cells of a job that is done", n, cells)
	}
}

// TestCellsOfCancelled: the runs that have ended stay if the job is cancelled or fails,
// until it is deleted, also in a snapshot; the runs of a done job are in its blobs.
func TestCellsOfCancelled(t *testing.T) {
	m := newMachine(t)
	m.start()
	jobs := m.do(protocol.EntryExperiment, experimentEntry("t", "e", 3)).([]*Job)
	for i, j := range jobs {
		m.do(protocol.EntryJobState, &protocol.JobStateEntry{Epoch: m.s.Epoch(), Job: j.ID, State: protocol.Running})
		m.do(protocol.EntryResult, &protocol.ResultEntry{Epoch: m.s.Epoch(), Job: j.ID, Round: 1, Task: 2, Of: 4,
			Digest: digest("123"[i]), Bytes: 8})
	}
	m.do(protocol.EntryCancel, &protocol.JobEntry{Job: jobs[0].ID})
	m.do(protocol.EntryJobState, &protocol.JobStateEntry{Epoch: m.s.Epoch(), Job: jobs[1].ID, State: protocol.Failed,
		Error: "why"})
	m.do(protocol.EntryFinish, &protocol.FinishEntry{Epoch: m.s.Epoch(), Job: jobs[2].ID, Outcome: []byte(`{}`)})
	s := decode(t, encode(t, m.s))
	refs := s.References()
	for i, j := range jobs {
		kept := 1
		if i == 2 {
			kept = 0
		}
		now := s.Job(j.ID)
		if n := len(now.Recorded(1)); n != kept || refs.Has(digest("123"[i])) != (kept == 1) || now.Info().Gathered != kept ||
			now.Info().CellCount != 4 {
			t.Errorf("%v, which is %s, keeps %d cells", now, now.State, n)
		}
	}
	m.do(protocol.EntryJobsDelete, &protocol.JobsDeleteEntry{Jobs: []uint64{jobs[0].ID}})
	if m.s.References().Has(digest('1')) {
		t.Error("the results of a deleted job are kept")
	}
}

// TestOutline: the outline of the last submission stays with all jobs of its experiment,
// also one that submits no jobs, until all of them are deleted; a submission that is sent
// again late does not bring an earlier one back.
func TestOutline(t *testing.T) {
	m := newMachine(t)
	m.start()
	has := func(want byte, jobs int) {
		t.Helper()
		n := 0
		for _, j := range m.s.Jobs() {
			if j.Experiment == "e" {
				if n++; j.Outline != digest(want) || j.Info().Outline != j.Outline {
					t.Errorf("%v has the outline %.8s", j, j.Outline)
				}
			}
		}
		if n != jobs || jobs > 0 && !m.s.References().Has(digest(want)) {
			t.Errorf("%d jobs; the outline may be deleted: %v", n, !m.s.References().Has(digest(want)))
		}
	}
	first := experimentEntry("t", "e", 2)
	first.Outline = digest('1')
	made := m.do(protocol.EntryExperiment, first).([]*Job)
	has('1', 2)
	if made[1].Outline != digest('1') || made[1] != m.s.Job(made[1].ID) {
		t.Errorf("%+v", made[1])
	}
	m.do(protocol.EntryExperiment, &protocol.ExperimentEntry{Name: "e", Outline: digest('2')})
	has('2', 2)
	m.do(protocol.EntryCondemn, &protocol.CondemnEntry{Digests: []string{digest('3')}})
	later := experimentEntry("t2", "e", 3)
	later.Jobs, later.Outline = later.Jobs[2:], digest('3')
	m.do(protocol.EntryExperiment, later)
	has('3', 3)
	if len(m.s.Condemned()) > 0 {
		t.Error("the outline is marked for deletion")
	}
	m.do(protocol.EntryExperiment, first)
	has('3', 3)
	alone := &protocol.ExperimentEntry{Name: "e", Outline: digest('4'), After: m.s.Index()}
	back := &protocol.ExperimentEntry{Name: "e", Outline: digest('3'), After: m.s.Index() + 2}
	m.do(protocol.EntryExperiment, alone)
	m.do(protocol.EntryExperiment, alone)
	has('4', 3)
	m.do(protocol.EntryExperiment, back)
	has('3', 3)
	m.s = decode(t, encode(t, m.s))
	if err := m.refused(protocol.EntryExperiment, alone); !errors.Is(err, ErrExists) { // it is late
		t.Errorf("an outline that is sent again late: %v", err)
	}
	has('3', 3)
	m.do(protocol.EntryExperiment, back)
	has('3', 3)
	var ids []uint64
	for _, j := range m.s.Jobs()[1:] {
		m.do(protocol.EntryCancel, &protocol.JobEntry{Job: j.ID})
		ids = append(ids, j.ID)
	}
	has('3', 3)
	m.do(protocol.EntryJobsDelete, &protocol.JobsDeleteEntry{Jobs: ids})
	has('3', 0)
	if m.s.References().Has(digest('3')) {
		t.Error("the outline of a deleted experiment is kept")
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
	nameless, empty := experimentEntry("t", "e", 2), experimentEntry("t", "e", 2)
	nameless.Jobs[1].Name, empty.Jobs[1].Job = "", nil
	odd := experimentEntry("t", "e", 1)
	odd.Outline = "odd"
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
		"a job without a name": {nameless, ErrInvalid},
		"a job that is none":   {empty, ErrInvalid},
		"no jobs":              {experimentEntry("t", "e", 0), ErrInvalid},
		"an outline alone":     {&protocol.ExperimentEntry{Name: "e", Outline: digest('1')}, ErrInvalid},
		"an odd outline":       {odd, ErrInvalid},
		"no name":              {experimentEntry("t", "", 1), ErrInvalid},
	} {
		if err := m.refused(protocol.EntryExperiment, c.entry); !errors.Is(err, c.want) || len(m.s.Jobs()) != 2 {
			t.Errorf("%s: %v, %d jobs", name, err, len(m.s.Jobs()))
		}
	}
}

// TestCellBlobs: blobs of runs are kept as long as the job, and a finish without a valid
// blob is refused.
func TestCellBlobs(t *testing.T) {
	m := newMachine(t)
	m.start()
	j := m.do(protocol.EntryExperiment, experimentEntry("t", "e", 1)).([]*Job)[0]
	m.do(protocol.EntryJobState, &protocol.JobStateEntry{Epoch: m.s.Epoch(), Job: j.ID, State: protocol.Running})
	finish := &protocol.FinishEntry{Epoch: m.s.Epoch(), Job: j.ID, Outcome: []byte(`{}`),
		Cells: []protocol.CellsRef{{BlobRef: protocol.BlobRef{Blob: "no", Bytes: 7}, Count: 4}}}
	if err := m.refused(protocol.EntryFinish, finish); !errors.Is(err, ErrInvalid) {
		t.Errorf("error %v", err)
	}
	finish.Cells[0].Blob = digest('6')
	m.do(protocol.EntryFinish, finish)
	if !m.s.References().Has(digest('6')) {
		t.Error("the blob of cells may be deleted")
	}
	m.do(protocol.EntryJobsDelete, &protocol.JobsDeleteEntry{Jobs: []uint64{j.ID}})
	if m.s.References().Has(digest('6')) {
		t.Error("the blob of cells is kept without its job")
	}
}

// TestUnended: an experiment has not ended while one of its jobs has not.
func TestUnended(t *testing.T) {
	m := newMachine(t)
	m.start()
	e := m.do(protocol.EntryExperiment, experimentEntry("t1", "e", 2)).([]*Job)
	f := m.do(protocol.EntryExperiment, experimentEntry("t2", "f", 1)).([]*Job)
	for i, want := range []map[string]bool{{"e": true, "f": true}, {"e": true}, {}} {
		if got := Unended(m.s.Jobs()); !maps.Equal(got, want) {
			t.Errorf("%d: %v, want %v", i, got, want)
		}
		end := [][]*Job{{e[0], f[0]}, {e[1]}, nil}[i]
		for _, j := range end {
			m.do(protocol.EntryCancel, &protocol.JobEntry{Job: j.ID})
		}
	}
}

// TestCellsSpent: the outcome of a job has the time that its runs took.
func TestCellsSpent(t *testing.T) {
	for outcome, want := range map[string]map[string]float64{
		`{"runs_spent_seconds":{"a":1.5,"b":2}}`: {"a": 1.5, "b": 2}, `{}`: nil, ``: nil, `{"runs_spent_seconds":3}`: nil,
	} {
		if got := (&Job{Results: Results{summary: summarize([]byte(outcome))}}).CellsSpent(); !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", outcome, got, want)
		}
	}
}

// TestWithheldOfRounds: tasks that are not run count until their round is committed, and
// those of later rounds stay.
func TestWithheldOfRounds(t *testing.T) {
	m := newMachine(t)
	m.start()
	j := m.do(protocol.EntryExperiment, experimentEntry("t", "e", 1)).([]*Job)[0]
	m.do(protocol.EntryJobState, &protocol.JobStateEntry{Epoch: m.s.Epoch(), Job: j.ID, State: protocol.Running})
	notRun := func(want int) {
		t.Helper()
		for what, s := range map[string]*State{"the state": m.s, "its snapshot": decode(t, encode(t, m.s))} {
			if got := s.Job(j.ID).Info().CellsNotRun; got != want {
				t.Errorf("%s: %d cells are not run, want %d", what, got, want)
			}
		}
	}
	commit := func(round uint64) {
		m.do(protocol.EntryCommit, commits(m.s.Epoch(), j.ID, round, []byte("state"), 9)[0])
	}
	for round, units := range [][]uint32{{0, 1, 2}, {3}, {1, 2}} {
		m.do(protocol.EntryWithhold, &protocol.WithholdEntry{Epoch: m.s.Epoch(), Job: j.ID, Round: uint64(round) + 1,
			Tasks: units})
	}
	notRun(6)
	commit(1)
	notRun(3)
	commit(2)
	notRun(2)
	commit(4)
	notRun(0)
	commit(5)
	notRun(0)
}

// TestWithhold: tasks that are not run are counted, in a snapshot and after the end too;
// what is recorded stays, whichever came first; only the leader of now says so, of tasks
// that there are.
func TestWithhold(t *testing.T) {
	m := newMachine(t)
	m.start()
	j := m.do(protocol.EntryExperiment, experimentEntry("t/7", "e", 1)).([]*Job)[0]
	if j.Submission() != "t/7" {
		t.Errorf("submission %q", j.Submission())
	}
	e := &protocol.WithholdEntry{Epoch: m.s.Epoch(), Job: j.ID, Round: 1, Tasks: []uint32{3, 1, 2}, Compute: 5}
	if err := m.refused(protocol.EntryWithhold, e); !errors.Is(err, ErrNotRunning) {
		t.Error(err)
	}
	m.do(protocol.EntryJobState, &protocol.JobStateEntry{Epoch: m.s.Epoch(), Job: j.ID, State: protocol.Running})
	part := &protocol.ResultEntry{Epoch: m.s.Epoch(), Job: j.ID, Round: 1, Task: 1, Of: 4, Digest: digest('1'), Bytes: 8,
		Compute: 7}
	m.do(protocol.EntryResult, part)
	m.do(protocol.EntryWithhold, e)
	part.Task = 3
	m.do(protocol.EntryResult, part)
	for i := range 2 {
		now := m.s.Job(j.ID)
		if info := now.Info(); info.Gathered != 3 || info.CellsNotRun != 2 || info.Tasks != 4 {
			t.Errorf("%d: %d of %d collected, %d not run", i, info.Gathered, info.Tasks, info.CellsNotRun)
		}
		for _, p := range now.Recorded(1) {
			if ran := p.Task == 1; ran != p.WasRun() || p.Compute != map[bool]uint64{true: 7, false: 5}[ran] {
				t.Errorf("%+v", p)
			}
		}
		m.s = decode(t, encode(t, m.s))
	}
	for _, units := range [][]uint32{nil, {4}, make([]uint32, protocol.MaxWithheld+1)} {
		if err := m.refused(protocol.EntryWithhold, &protocol.WithholdEntry{Epoch: m.s.Epoch(), Job: j.ID, Round: 1,
			Tasks: units}); !errors.Is(err, ErrInvalid) {
			t.Errorf("%d units: %v", len(units), err)
		}
	}
	if err := m.refused(protocol.EntryWithhold, &protocol.WithholdEntry{Epoch: m.s.Epoch(), Job: j.ID,
		Tasks: []uint32{0}}); !errors.Is(err, ErrStaleRound) {
		t.Error(err)
	}
	m.lead("b")
	if err := m.refused(protocol.EntryWithhold, e); !errors.Is(err, ErrStaleEpoch) {
		t.Error(err)
	}
	m.do(protocol.EntryFinish, &protocol.FinishEntry{Epoch: m.s.Epoch(), Job: j.ID, Outcome: []byte(`{"runs_not_run":2}`)})
	for range 2 {
		if info := m.s.Job(j.ID).Info(); info.CellsNotRun != 2 || info.Gathered != 0 {
			t.Errorf("at the end: %d collected, %d not run", info.Gathered, info.CellsNotRun)
		}
		m.s = decode(t, encode(t, m.s))
	}
}

// TestSettingsOf: the settings are listed in their order; JSON that is no object has none.
func TestSettingsOf(t *testing.T) {
	for text, want := range map[string][]field{
		`{"trees":5,"a":"b"}`: {{"trees", "5"}, {"a", `"b"`}},
		`{"trees":5,"a"`:      {{"trees", "5"}},
		`{"trees":5,"a":}`:    {{"trees", "5"}},
		`{}`:                  nil,
		`["trees",5]`:         nil,
		`"trees"`:             nil,
		`}`:                   nil,
		``:                    nil,
	} {
		if got := settingsOf([]byte(text)); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

// TestDifference: an error names the first difference, with both values.
func TestDifference(t *testing.T) {
	job := func(change func(*round.Job)) *round.Job {
		j := &round.Job{Algorithm: "ldlf", Numerics: 1, Seed: 1, Dataset: "d1",
			Params: []byte(`{"trees":5,"depth":7,"words":"a,b"}`)}
		change(j)
		return j
	}
	tests := []struct {
		change func(*round.Job)
		audit  uint32
		want   string
	}{
		{func(j *round.Job) { j.Algorithm, j.Seed = "rf", 2 }, 0, "its algorithm is ldlf, but the new job has rf"},
		{func(j *round.Job) { j.Dataset = "d2" }, 0, "its dataset's digest is d1, but the new job has d2"},
		{func(j *round.Job) { j.Split.TestFraction = 0.25 }, 0, "its test_fraction is 0, but the new job has 0.25"},
		{func(j *round.Job) { j.Folds = 3 }, 0, "its folds is 0, but the new job has 3"},
		{func(j *round.Job) { j.Split.Assigned = "abc" }, 0, "its split file is none, but the new job has abc"},
		{func(j *round.Job) { j.Split.Groups = "abc" }, 0, "its groups is none, but the new job has abc"},
		{func(j *round.Job) {}, 7, "its audit is 0 of a million tasks, but the new job has 7 of a million tasks"},
		{func(j *round.Job) {
			j.Params = []byte(`{"trees":5,"depth":8,"words":"c"}`)
		}, 0, "its depth is 7, but the new job has 8"},
		{func(j *round.Job) {
			j.Params = []byte(`{"trees":5,"depth":7,"words":"c"}`)
		}, 0, `its words is "a,b", but the new job has "c"`},
		{func(j *round.Job) { j.Seed = 2 }, 0, "its seed is 1, but the new job has 2"},
		{func(j *round.Job) { j.Measures = "six" }, 0, "its measures is ten, but the new job has six"},
		{func(j *round.Job) { j.Clip = "zero" }, 0, "its clip is none, but the new job has zero"},
		{func(j *round.Job) { j.Numerics = 2 }, 0, "its arithmetic version is 1, but the new job has 2"},
		{func(j *round.Job) { j.Params = []byte(`{"trees":5,"depth":7}`) }, 0, "it has different settings"},
		{func(j *round.Job) {
			j.Params = []byte(`{"trees":5,"depth":7,"words":"a,b","more":1}`)
		}, 0, "it has different settings"},
		{func(j *round.Job) { j.Params = []byte(`{"trees":5,"levels":7,"words":"a,b"}`) }, 0, "it has different settings"},
		{func(j *round.Job) { j.Params = nil }, 0, "it has different settings"},
		{func(j *round.Job) { j.Split.ValidationMin = 3 }, 0, "its division into training and test samples is different"},
	}
	for _, test := range tests {
		old := &Job{Dataset: "yeast", Job: job(func(*round.Job) {})}
		got := difference(old, &protocol.SubmitEntry{Dataset: "yeast", AuditPPM: test.audit, Job: job(test.change)})
		if got != test.want {
			t.Errorf("%s; want %s", got, test.want)
		}
	}
	other := &protocol.SubmitEntry{Dataset: "movie", Job: job(func(*round.Job) {})}
	if got := difference(&Job{Dataset: "yeast", Job: other.Job},
		other); got != "its dataset is yeast, but the new job has movie" {
		t.Error(got)
	}
}
