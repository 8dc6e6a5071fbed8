package state

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/protocol"
)

func TestLead(t *testing.T) {
	m := newMachine(t)
	first := m.lead("a")
	if first != m.index || m.s.Epoch() != first || m.s.Leader() != "a" || m.s.Nonce() != "n" {
		t.Errorf("epoch %d of %s at index %d", m.s.Epoch(), m.s.Leader(), m.index)
	}
	if next := m.lead("b"); next <= first || m.s.Leader() != "b" {
		t.Errorf("epoch %d of %s follows %d", next, m.s.Leader(), first)
	}
}

// TestFencing: every entry that a leader sends is fenced: an epoch that is not the current
// one, older or newer, is refused.
func TestFencing(t *testing.T) {
	m := newMachine(t)
	j := m.start()
	old := m.s.Epoch()
	now := m.lead("b")
	for _, epoch := range []uint64{0, old, now + 1} {
		for kind, body := range fencedEntries(epoch, j.ID) {
			if err := m.refused(kind, body); !errors.Is(err, ErrStaleEpoch) {
				t.Errorf("kind %d of epoch %d in epoch %d: %v", kind, epoch, now, err)
			}
		}
	}
	for _, kind := range []protocol.EntryKind{protocol.EntryResult, protocol.EntryCommit, protocol.EntryJobState} {
		m.do(kind, fencedEntries(now, j.ID)[kind])
	}
}

func fencedEntries(epoch, job uint64) map[protocol.EntryKind]any {
	return map[protocol.EntryKind]any{
		protocol.EntryJobState: &protocol.JobStateEntry{Epoch: epoch, Job: job, State: protocol.Failed, Error: "x"},
		protocol.EntryCommit:   &protocol.CommitEntry{Epoch: epoch, Job: job, Round: 9, Total: 1, Data: []byte{1}},
		protocol.EntryResult:   &protocol.ResultEntry{Epoch: epoch, Job: job, Round: 9, Of: 4, Digest: digest('c')},
		protocol.EntryFinish:   &protocol.FinishEntry{Epoch: epoch, Job: job},
	}
}

// TestLifecycle: a queued job accepts no results, and an ended one accepts no entry.
func TestLifecycle(t *testing.T) {
	m := newMachine(t)
	ran := m.start()
	epoch := m.s.Epoch()
	queued := m.submit("t2", "second", 2)
	for _, kind := range []protocol.EntryKind{protocol.EntryCommit, protocol.EntryResult, protocol.EntryFinish} {
		if err := m.refused(kind, fencedEntries(epoch, queued.ID)[kind]); !errors.Is(err, ErrNotRunning) {
			t.Errorf("kind %d for a queued job: %v", kind, err)
		}
	}
	again := m.do(protocol.EntryJobState, &protocol.JobStateEntry{Epoch: epoch, Job: ran.ID, State: protocol.Running,
		Time: 99}).(*Job)
	if again.Started != 3 {
		t.Errorf("a job that goes on started anew at %d", again.Started)
	}
	for _, to := range []protocol.JobState{protocol.Done, protocol.Cancelled, protocol.Queued, "odd"} {
		if err := m.refused(protocol.EntryJobState, &protocol.JobStateEntry{Epoch: epoch, Job: ran.ID,
			State: to}); !errors.Is(err, ErrInvalid) {
			t.Errorf("moved to %q: %v", to, err)
		}
	}
	m.do(protocol.EntryCancel, &protocol.JobEntry{Job: queued.ID, Time: 7})
	ended := m.index
	m.do(protocol.EntryCancel, &protocol.JobEntry{Job: queued.ID, Time: 8})
	if got := m.s.Job(queued.ID).EndIndex; got != ended {
		t.Errorf("it ended at index %d, want %d", got, ended)
	}
	m.do(protocol.EntryFinish, &protocol.FinishEntry{Epoch: epoch, Job: ran.ID, Time: 9})
	for _, id := range []uint64{queued.ID, ran.ID} {
		for kind, body := range fencedEntries(epoch, id) {
			if err := m.refused(kind, body); !errors.Is(err, ErrFinal) {
				t.Errorf("kind %d for the ended %v: %v", kind, m.s.Job(id), err)
			}
		}
	}
	if err := m.refused(protocol.EntryCancel, &protocol.JobEntry{Job: ran.ID}); !errors.Is(err, ErrFinal) {
		t.Errorf("cancelling a job that is done: %v", err)
	}
	if err := m.refused(protocol.EntryCancel, &protocol.JobEntry{Job: 1 << 40}); !errors.Is(err, ErrNotFound) {
		t.Errorf("cancelling no job: %v", err)
	}
}

// TestEndedJobs: a job that ended keeps only its result.
func TestEndedJobs(t *testing.T) {
	model, predicted := protocol.ModelRef{Digest: digest('1'), Blob: digest('2'), Bytes: 5},
		&protocol.BlobRef{Blob: digest('3'), Bytes: 6}
	for want, end := range map[protocol.JobState]func(m *machine, epoch, id uint64){
		protocol.Done: func(m *machine, epoch, id uint64) {
			m.do(protocol.EntryFinish, &protocol.FinishEntry{Epoch: epoch, Job: id, Outcome: []byte(`{"steps":1}`),
				Models: []protocol.ModelRef{model}, Predictions: predicted, Seconds: 2.5, Time: 9})
		},
		protocol.Failed: func(m *machine, epoch, id uint64) {
			m.do(protocol.EntryJobState, &protocol.JobStateEntry{Epoch: epoch, Job: id, State: protocol.Failed,
				Error: strings.Repeat("e", protocol.MaxText+1), Time: 9})
		},
		protocol.Cancelled: func(m *machine, _, id uint64) {
			m.do(protocol.EntryCancel, &protocol.JobEntry{Job: id, Time: 9})
		},
	} {
		m := newMachine(t)
		j := m.start()
		epoch := m.s.Epoch()
		m.do(protocol.EntryCommit, &protocol.CommitEntry{Epoch: epoch, Job: j.ID, Round: 4, Total: 2, Data: []byte{1, 2},
			Progress: []byte(`{"step": 4}`)})
		m.do(protocol.EntryResult, &protocol.ResultEntry{Epoch: epoch, Job: j.ID, Round: 5, Of: 4, Digest: digest('c')})
		m.do(protocol.EntryCommit, &protocol.CommitEntry{Epoch: epoch, Job: j.ID, Round: 5, Total: 2, Data: []byte{1}})
		end(m, epoch, j.ID)
		got := m.s.Job(j.ID)
		if got.State != want || got.Ended != 9 || got.Round != 4 || string(got.Progress) != `{"step":4}` {
			t.Errorf("%s: %+v", want, got)
		}
		if got.Trainer != nil || got.TrainerBytes != 0 || got.gathered.n != 0 || got.Manifest != nil || got.pending != nil {
			t.Errorf("%s: it keeps %+v", want, got)
		}
		info := got.Info()
		if info.Progress == nil || info.Progress.Step != 4 || info.Rounds != 4 || info.ID != j.ID ||
			len(info.Error) > protocol.MaxText {
			t.Errorf("%s: %+v", want, info)
		}
		if published := len(info.Models) > 0; published != (want == protocol.Done) {
			t.Errorf("%s: models %v", want, info.Models)
		}
		if kept := info.Predictions != nil; kept != (want == protocol.Done) || m.s.References().Has(predicted.Blob) != kept {
			t.Errorf("%s: predictions %v", want, info.Predictions)
		}
		m.do(protocol.EntryDatasetDelete, &protocol.DatasetDeleteEntry{Name: "yeast"})
	}
}

func TestUnknownEntry(t *testing.T) {
	m := newMachine(t)
	m.lead("a")
	m.do(protocol.EntryMember, &protocol.MemberEntry{ID: "a", Version: "9.9.9"})
	for _, c := range []struct {
		entry []byte
		want  string
	}{
		{[]byte{protocol.Version, 77, '{', '}'}, "log entry 1000 is of kind 77, which"},
		{[]byte{protocol.Version + 1, byte(protocol.EntryLead)}, fmt.Sprintf("log entry 1000 has format %d, which",
			protocol.Version+1)},
	} {
		entry := c.entry
		next, r := m.s.Apply(1000, entry)
		var unknown *UnknownEntryError
		if !errors.Is(r.Err, ErrUnknownEntry) || !errors.As(r.Err, &unknown) || unknown.Index != 1000 {
			t.Fatalf("%v: %v", entry, r.Err)
		}
		if !strings.HasPrefix(r.Err.Error(), c.want) || !strings.HasSuffix(r.Err.Error(), ": run 9.9.9, the version of the "+
			"current leader") {
			t.Errorf("it does not name what is unknown, or the version that is needed: %v", r.Err)
		}
		if next != m.s {
			t.Error("an unknown entry changes the state")
		}
	}
	if _, r := New().Apply(1, []byte{protocol.Version, 77}); !strings.HasSuffix(r.Err.Error(),
		": run the version that wrote it") {
		t.Errorf("without a leader: %v", r.Err)
	}
}

func TestMalformed(t *testing.T) {
	m := newMachine(t)
	j := m.start()
	epoch := m.s.Epoch()
	bad := []struct {
		kind protocol.EntryKind
		body any
	}{
		{protocol.EntryLead, &protocol.LeadEntry{}},
		{protocol.EntryMember, &protocol.MemberEntry{}},
		{protocol.EntryDatasetPut, &protocol.DatasetPutEntry{Name: "x"}},
		{protocol.EntryDatasetPut, &protocol.DatasetPutEntry{Name: "a/b", Manifest: manifest('e')}},
		{protocol.EntrySubmit, submitEntry("t9", "17", 1)},
		{protocol.EntrySubmit, submitEntry("t9", "a b", 1)},
		{protocol.EntrySubmit, submitEntry("t9", strings.Repeat("n", protocol.MaxName+1), 1)},
		{protocol.EntrySubmit, &protocol.SubmitEntry{Dataset: "yeast"}},
		{protocol.EntrySubmit, &protocol.SubmitEntry{Dataset: "yeast", Job: jobOn(manifest('e'), 1)}},
		{protocol.EntryResult, &protocol.ResultEntry{Epoch: epoch, Job: j.ID, Round: 1, Of: 4, Digest: "ABC"}},
		// it means that the task is not run
		{protocol.EntryResult, &protocol.ResultEntry{Epoch: epoch, Job: j.ID, Round: 1, Of: 4, Digest: digest('0')}},
		{protocol.EntryResult, &protocol.ResultEntry{Epoch: epoch, Job: j.ID, Round: 1, Digest: digest('c'),
			Task: protocol.MaxTasks}},
		{protocol.EntryCommit, &protocol.CommitEntry{Epoch: epoch, Job: j.ID, Round: 1, Total: 5}},
		{protocol.EntryCommit, &protocol.CommitEntry{Epoch: epoch, Job: j.ID, Round: 1, Total: 1, Data: []byte{1},
			Progress: []byte("{")}},
		{protocol.EntryCommit, &protocol.CommitEntry{Epoch: epoch, Job: j.ID, Round: 1, Blob: strings.Repeat("Z", 64)}},
		{protocol.EntryFinish, &protocol.FinishEntry{Epoch: epoch, Job: j.ID,
			Models: []protocol.ModelRef{{Digest: digest('1')}}}},
		{protocol.EntryCondemn, &protocol.CondemnEntry{Digests: []string{"x"}}},
		{protocol.EntrySubmit, submitEntry(strings.Repeat("t", protocol.MaxToken+1), "", 1)},
		{protocol.EntrySuspect, &protocol.SuspectEntry{Epoch: epoch, Jobs: []uint64{j.ID}}},
		{protocol.EntrySuspect, &protocol.SuspectEntry{Epoch: epoch, Worker: "w",
			Jobs: make([]uint64, protocol.MaxSuspects+1)}},
		{protocol.EntrySuspect, &protocol.SuspectEntry{Epoch: epoch, Worker: strings.Repeat("w", protocol.MaxText+1)}},
	}
	for _, b := range bad {
		if err := m.refused(b.kind, b.body); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %v", b.body, err)
		}
	}
	for _, entry := range [][]byte{nil, {protocol.Version}, {protocol.Version, byte(protocol.EntryLead)},
		{protocol.Version, byte(protocol.EntryCommit), 1}} {
		if r := m.raw(entry); !errors.Is(r.Err, ErrInvalid) {
			t.Errorf("% x: %v", entry, r.Err)
		}
	}
}

// TestBoundsOfEntries: an entry at a bound is accepted, and an entry above it is refused.
func TestBoundsOfEntries(t *testing.T) {
	type entry struct {
		kind protocol.EntryKind
		body any
	}
	for what, c := range map[string]struct {
		most int
		make func(epoch, job uint64, n int) entry
	}{
		"bytes of a token": {protocol.MaxToken, func(_, _ uint64, n int) entry {
			return entry{protocol.EntrySubmit, submitEntry(strings.Repeat("t", n), "", 2)}
		}},
		"bytes of a name": {protocol.MaxName, func(_, _ uint64, n int) entry {
			return entry{protocol.EntrySubmit, submitEntry("t", strings.Repeat("n", n), 2)}
		}},
		"audited units of a million": {million, func(_, _ uint64, n int) entry {
			e := submitEntry("t", "n", 2)
			e.AuditPPM = uint32(n)
			return entry{protocol.EntrySubmit, e}
		}},
		"jobs of an experiment": {protocol.MaxExperimentJobs, func(_, _ uint64, n int) entry {
			return entry{protocol.EntryExperiment, experimentEntry("t2", "f", n)}
		}},
		"jobs to delete": {protocol.MaxDelete, func(_, _ uint64, n int) entry {
			return entry{protocol.EntryJobsDelete, &protocol.JobsDeleteEntry{Jobs: make([]uint64, n)}}
		}},
		"suspected jobs": {protocol.MaxSuspects, func(epoch, _ uint64, n int) entry {
			return entry{protocol.EntrySuspect, &protocol.SuspectEntry{Epoch: epoch, Worker: "w", Jobs: make([]uint64, n)}}
		}},
		"bytes of a worker's name": {protocol.MaxText, func(epoch, _ uint64, n int) entry {
			return entry{protocol.EntrySuspect, &protocol.SuspectEntry{Epoch: epoch, Worker: strings.Repeat("w", n)}}
		}},
		"units of a round": {protocol.MaxTasks, func(epoch, job uint64, n int) entry {
			return entry{protocol.EntryResult, &protocol.ResultEntry{Epoch: epoch, Job: job, Round: 1, Task: 3, Of: uint32(n),
				Digest: digest('c')}}
		}},
		"the last unit of a round of 8": {7, func(epoch, job uint64, n int) entry {
			return entry{protocol.EntryResult, &protocol.ResultEntry{Epoch: epoch, Job: job, Round: 1, Task: uint32(n), Of: 8,
				Digest: digest('c')}}
		}},
		"withheld units": {protocol.MaxWithheld, func(epoch, job uint64, n int) entry {
			return entry{protocol.EntryWithhold, &protocol.WithholdEntry{Epoch: epoch, Job: job, Round: 1,
				Tasks: make([]uint32, n)}}
		}},
		"the last withheld unit of 4 cells": {3, func(epoch, job uint64, n int) entry {
			return entry{protocol.EntryWithhold, &protocol.WithholdEntry{Epoch: epoch, Job: job, Round: 1,
				Tasks: []uint32{0, uint32(n), 1}}}
		}},
		"models": {MaxModels, func(epoch, job uint64, n int) entry {
			return entry{protocol.EntryFinish, &protocol.FinishEntry{Epoch: epoch, Job: job,
				Models: slices.Repeat([]protocol.ModelRef{{Digest: digest('1'), Blob: digest('2')}}, n)}}
		}},
		"blobs of cells": {MaxModels, func(epoch, job uint64, n int) entry {
			return entry{protocol.EntryFinish, &protocol.FinishEntry{Epoch: epoch, Job: job,
				Cells: slices.Repeat([]protocol.CellsRef{{BlobRef: protocol.BlobRef{Blob: digest('6')}, Count: 1}}, n)}}
		}},
		"cells of a blob": {round.MaxCells, func(epoch, job uint64, n int) entry {
			return entry{protocol.EntryFinish, &protocol.FinishEntry{Epoch: epoch, Job: job,
				Cells: []protocol.CellsRef{{BlobRef: protocol.BlobRef{Blob: digest('6')}, Count: n}}}}
		}},
		"curves of folds": {dataset.MaxFolds, func(epoch, job uint64, n int) entry {
			return entry{protocol.EntryFinish, &protocol.FinishEntry{Epoch: epoch, Job: job, FoldCurves: make([][]byte, n)}}
		}},
	} {
		m := newMachine(t)
		m.start()
		epoch := m.s.Epoch()
		job := m.do(protocol.EntryExperiment, experimentEntry("t1", "e", 1)).([]*Job)[0].ID
		m.do(protocol.EntryJobState, &protocol.JobStateEntry{Epoch: epoch, Job: job, State: protocol.Running})
		beyond := c.make(epoch, job, c.most+1)
		if err := m.refused(beyond.kind, beyond.body); !errors.Is(err, ErrInvalid) {
			t.Errorf("%d %s: %v", c.most+1, what, err)
		}
		at := c.make(epoch, job, c.most)
		if r := m.raw(encodeEntry(at.kind, at.body)); r.Err != nil {
			t.Errorf("%d %s: %v", c.most, what, r.Err)
		}
		decode(t, encode(t, m.s))
	}
}

// TestReborn: a state that begins a new cluster has no members and no pieces of a training
// state, and its index is given.
func TestReborn(t *testing.T) {
	m := newMachine(t)
	j := m.start()
	m.do(protocol.EntryMember, &protocol.MemberEntry{ID: "a"})
	m.do(protocol.EntryCommit, commits(m.s.Epoch(), j.ID, 1, []byte("abc"), 2)[0])
	for _, index := range []uint64{m.index, m.index + 1, m.index + 1000} {
		s := m.s.Reborn(index)
		if s.Index() != index || len(s.Members()) != 0 || s.Job(j.ID).pending != nil ||
			s.Job(j.ID).State != protocol.Running || s.Dataset("yeast") == nil {
			t.Errorf("at index %d: index %d, members %v, %+v", index, s.Index(), s.Members(), s.Job(j.ID))
		}
	}
	if len(m.s.Members()) != 1 || m.s.Job(j.ID).pending == nil {
		t.Error("the state that it is made of has changed")
	}
	defer func() {
		if p, ok := recover().(string); !ok || !strings.HasPrefix(p, "state: ") {
			t.Errorf("at an earlier index: %v", p)
		}
	}()
	m.s.Reborn(m.index - 1)
}

func TestIndexGrows(t *testing.T) {
	m := newMachine(t)
	m.lead("a")
	defer func() {
		if p, ok := recover().(string); !ok || !strings.HasPrefix(p, "state: ") {
			t.Errorf("an entry applied twice: %v", p)
		}
	}()
	m.s.Apply(m.index, nil)
}

// TestReplaced: each training state in a blob is listed once after another state replaces
// it, in order, since any earlier state; beyond the bound the oldest are forgotten, and a
// snapshot has none.
func TestReplaced(t *testing.T) {
	m := newMachine(t)
	j := m.start()
	round := uint64(0)
	commit := func(blob string) *State {
		round++
		m.do(protocol.EntryCommit, &protocol.CommitEntry{Epoch: m.s.Epoch(), Job: j.ID, Round: round, Blob: blob, Total: 9})
		return m.s
	}
	first := commit(digest('a'))
	if got := first.Replaced().Since(Replaced{}); len(got) != 0 {
		t.Errorf("before any was replaced: %q", got)
	}
	commit(digest('b'))
	second := commit(digest('b')) // the same again
	commit(digest('c'))
	m.do(protocol.EntryCommit, commits(m.s.Epoch(), j.ID, round+1, []byte("in the log"), 99)[0])
	if got := m.s.Replaced().Since(first.Replaced()); !slices.Equal(got, []string{digest('a'), digest('b'), digest('c')}) {
		t.Errorf("since the first state: %q", got)
	}
	if got := m.s.Replaced().Since(m.s.Replaced()); len(got) != 0 {
		t.Errorf("since now: %q", got)
	}
	if got := m.s.Replaced().Since(second.Replaced()); !slices.Equal(got, []string{digest('b'), digest('c')}) {
		t.Errorf("since the second state: %q", got)
	}
	round++
	late := m.s
	for i := range maxReplaced + 2 {
		commit(fmt.Sprintf("%064x", i))
	}
	got := m.s.Replaced().Since(late.Replaced())
	if len(got) != maxReplaced || got[0] != fmt.Sprintf("%064x", 1) ||
		got[maxReplaced-1] != fmt.Sprintf("%064x", maxReplaced) {
		t.Errorf("%d replaced, from %q on", len(got), got[:1])
	}
	read := decode(t, encode(t, m.s))
	if n := len(read.Replaced().Since(late.Replaced())); n != 0 {
		t.Errorf("a snapshot has %d", n)
	}
	m.s = read
	commit(digest('d'))
	if got := m.s.Replaced().Since(late.Replaced()); !slices.Equal(got, []string{fmt.Sprintf("%064x", maxReplaced+1)}) {
		t.Errorf("after a snapshot: %q", got)
	}
}
