package state

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/protocol"
)

// A paused job keeps its last commit, takes nothing from the driver that is still
// at it, and goes on from there.
func TestPause(t *testing.T) {
	m := newMachine(t)
	j := m.start()
	epoch := m.s.Epoch()
	m.do(protocol.EntryCommit, commits(epoch, j.ID, 4, []byte("state"), 9)[0])
	m.do(protocol.EntryCollected, &protocol.CollectedEntry{Epoch: epoch, Job: j.ID, Round: 5, Of: 4, Digest: digest('c')})
	m.do(protocol.EntryCommit, commits(epoch, j.ID, 6, []byte("state"), 2)[0])
	paused := m.do(protocol.EntryPause, &protocol.PauseEntry{Job: j.ID}).(*Job)
	if paused.State != protocol.Paused || paused.Round != 4 || string(paused.Trainer) != "state" || paused.collected.n != 1 || paused.pending != nil || paused.Pauses != 1 {
		t.Errorf("paused: %+v", paused)
	}
	if again := m.do(protocol.EntryPause, &protocol.PauseEntry{Job: j.ID}); again != paused {
		t.Errorf("paused again: %+v", again)
	}
	fenced := fencedEntries(epoch, j.ID)
	fenced[protocol.EntryJobState] = &protocol.JobStateEntry{Epoch: epoch, Job: j.ID, State: protocol.Running}
	for kind, body := range fenced {
		if err := m.refused(kind, body); !errors.Is(err, ErrNotRunning) {
			t.Errorf("kind %d for a paused job: %v", kind, err)
		}
	}
	if err := m.refused(protocol.EntryJobState, fencedEntries(epoch, j.ID)[protocol.EntryJobState]); !errors.Is(err, ErrNotRunning) {
		t.Errorf("a paused job failed: %v", err)
	}
	if err := m.refused(protocol.EntryDatasetDelete, &protocol.DatasetDeleteEntry{Name: "yeast"}); !errors.Is(err, ErrInUse) {
		t.Errorf("the dataset of a paused job: %v", err)
	}
	queued := m.do(protocol.EntryResume, &protocol.ResumeEntry{Job: j.ID}).(*Job)
	if again := m.do(protocol.EntryResume, &protocol.ResumeEntry{Job: j.ID}); again != queued || queued.State != protocol.Queued {
		t.Errorf("resumed again: %+v", again)
	}
	ran := m.do(protocol.EntryJobState, fenced[protocol.EntryJobState]).(*Job)
	if ran.State != protocol.Running || ran.Started != 3 || ran.Round != 4 || ran.Manifest == nil {
		t.Errorf("it goes on as %+v", ran)
	}
	if again := m.do(protocol.EntryResume, &protocol.ResumeEntry{Job: j.ID}); again != ran {
		t.Errorf("a running job resumed: %+v", again)
	}
	m.do(protocol.EntryPause, &protocol.PauseEntry{Job: j.ID})
	m.do(protocol.EntryCancel, &protocol.CancelEntry{Job: j.ID})
	for kind, body := range map[protocol.EntryKind]any{
		protocol.EntryPause: &protocol.PauseEntry{Job: j.ID}, protocol.EntryResume: &protocol.ResumeEntry{Job: j.ID},
	} {
		if err := m.refused(kind, body); !errors.Is(err, ErrFinal) {
			t.Errorf("kind %d for a cancelled job: %v", kind, err)
		}
	}
}

// Whatever comes first of a cancellation and a result stands: a job is cancelled
// and has no models, or is done and has them, and both users hear so.
func TestCancelRacesWithFinish(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := newMachine(t)
		j := m.start()
		model := protocol.ModelRef{Digest: digest('1'), Blob: digest('2'), Bytes: 5}
		first := protocol.JobState("")
		for range rapid.IntRange(2, 8).Draw(rt, "entries") {
			kind := rapid.SampledFrom([]protocol.EntryKind{protocol.EntryCancel, protocol.EntryFinish, protocol.EntryPause, protocol.EntryResume}).Draw(rt, "kind")
			body := map[protocol.EntryKind]any{
				protocol.EntryCancel: &protocol.CancelEntry{Job: j.ID}, protocol.EntryPause: &protocol.PauseEntry{Job: j.ID}, protocol.EntryResume: &protocol.ResumeEntry{Job: j.ID},
				protocol.EntryFinish: &protocol.FinishEntry{Epoch: m.s.Epoch(), Job: j.ID, Models: []protocol.ModelRef{model}},
			}[kind]
			r := m.raw(encodeEntry(kind, body))
			got := m.s.Job(j.ID)
			if got.State.Final() && first == "" {
				first = got.State
			}
			if first != "" && got.State != first {
				rt.Fatalf("it was %s, then %s", first, got.State)
			}
			if kind == protocol.EntryCancel && (r.Err == nil) != (got.State == protocol.Cancelled) {
				rt.Fatalf("cancelled with %v, and it is %s", r.Err, got.State)
			}
			if kind == protocol.EntryFinish && (r.Err == nil) != (len(got.Models) > 0) && first != protocol.Done {
				rt.Fatalf("finished with %v, and it has the models %v", r.Err, got.Models)
			}
		}
		got := m.s.Job(j.ID)
		if published := len(got.Models) > 0; published != (got.State == protocol.Done) || m.s.References().Has(model.Blob) != published {
			rt.Fatalf("a job that is %s has the models %v, kept: %v", got.State, got.Models, m.s.References().Has(model.Blob))
		}
	})
}

// A name is free again once its job failed or was cancelled, and means the newest
// job; while a job has it, another spec is refused with both named.
func TestNames(t *testing.T) {
	m := newMachine(t)
	m.start()
	old := m.submit("t2", "mine", 5)
	other := submitEntry("t3", "mine", 6)
	other.AuditPPM = 7
	err := m.refused(protocol.EntrySubmit, other)
	want := old.String() + " already exists and is queued; its seed is 5, but the new job has 6: choose another name"
	if !errors.Is(err, ErrExists) || err.Error() != want {
		t.Errorf("another spec under the name: %v, want %s", err, want)
	}
	m.do(protocol.EntryCancel, &protocol.CancelEntry{Job: old.ID})
	if again := m.submit("t2", "mine", 5); again.ID != old.ID {
		t.Errorf("a submission that is sent again after its job was cancelled makes %v", again)
	}
	anew := m.submit("t4", "mine", 5)
	if anew.ID == old.ID || m.s.JobByName("mine") != anew || m.s.Job(old.ID).State != protocol.Cancelled {
		t.Errorf("the name means %v", m.s.JobByName("mine"))
	}
	m.do(protocol.EntryJobState, &protocol.JobStateEntry{Epoch: m.s.Epoch(), Job: anew.ID, State: protocol.Failed})
	third := m.do(protocol.EntrySubmit, other).(*Job)
	if m.s.JobByName("mine") != third || third.AuditPPM != 7 {
		t.Errorf("after a failure the name means %v", m.s.JobByName("mine"))
	}
}

// The queue's bound counts what has not ended, also while it is paused, and does
// not refuse what was submitted before.
func TestQueueIsBounded(t *testing.T) {
	m := newMachine(t)
	first := m.start()
	bounded := func(token, name string) *protocol.SubmitEntry {
		e := submitEntry(token, name, 5)
		e.MaxQueue = 2
		return e
	}
	second := m.do(protocol.EntrySubmit, bounded("t2", "two")).(*Job)
	m.do(protocol.EntryPause, &protocol.PauseEntry{Job: second.ID})
	err := m.refused(protocol.EntrySubmit, bounded("t3", ""))
	if !errors.Is(err, ErrQueue) || !strings.Contains(err.Error(), "2 jobs") || !strings.Contains(err.Error(), "at most 2") {
		t.Errorf("a third: %v", err)
	}
	for _, again := range []*protocol.SubmitEntry{bounded("t2", "two"), bounded("t9", "two")} {
		if j := m.do(protocol.EntrySubmit, again).(*Job); j.ID != second.ID {
			t.Errorf("%+v makes %v", again, j)
		}
	}
	m.do(protocol.EntryCancel, &protocol.CancelEntry{Job: first.ID})
	m.do(protocol.EntrySubmit, bounded("t3", ""))
}

// A worker that was found out is distrusted until somebody trusts it again, by
// whoever leads; the marks of its jobs stay, also of those that have ended.
func TestSuspect(t *testing.T) {
	m := newMachine(t)
	j := m.start()
	done := m.submit("t2", "", 2)
	m.do(protocol.EntryCancel, &protocol.CancelEntry{Job: done.ID})
	e := &protocol.SuspectEntry{Epoch: m.s.Epoch(), Worker: "w1", Jobs: []uint64{j.ID, done.ID, 999}, Reason: strings.Repeat("r", protocol.MaxReason+1), Time: 8}
	m.do(protocol.EntrySuspect, e)
	e.Reason, e.Jobs = "another", []uint64{j.ID}
	m.do(protocol.EntrySuspect, e)
	m.lead("b")
	if err := m.refused(protocol.EntrySuspect, e); !errors.Is(err, ErrStaleEpoch) {
		t.Errorf("a former leader suspects: %v", err)
	}
	if got := m.s.Distrusted(); len(got) != 1 || len(got["w1"]) != protocol.MaxReason {
		t.Errorf("distrusted: %v", got)
	}
	for _, id := range []uint64{j.ID, done.ID} {
		if got := m.s.Job(id).Info().Suspect; !strings.HasPrefix(got, "worker w1: rrr") {
			t.Errorf("job %d is suspect of %.40q", id, got)
		}
	}
	m.do(protocol.EntryTrust, &protocol.TrustEntry{Worker: "w1"})
	if err := m.refused(protocol.EntryTrust, &protocol.TrustEntry{Worker: "w1"}); !errors.Is(err, ErrNotFound) {
		t.Errorf("trusted twice: %v", err)
	}
	if len(m.s.Distrusted()) != 0 || m.s.Job(j.ID).Suspect == "" {
		t.Errorf("trusted again: %v, the job %q", m.s.Distrusted(), m.s.Job(j.ID).Suspect)
	}
	for i := range MaxDistrusted + 1 {
		m.do(protocol.EntrySuspect, &protocol.SuspectEntry{Epoch: m.s.Epoch(), Worker: fmt.Sprintf("w%04d", MaxDistrusted-i)})
	}
	if got := m.s.Distrusted(); len(got) != MaxDistrusted || m.s.DistrustedWorkers()[0].Worker != "w0000" {
		t.Errorf("%d are distrusted", len(got))
	} else if _, ok := got[fmt.Sprintf("w%04d", MaxDistrusted)]; ok {
		t.Error("the oldest distrust is kept")
	}
}

func TestMemberRemove(t *testing.T) {
	m := newMachine(t)
	for _, id := range []string{"a", "b"} {
		m.do(protocol.EntryMember, &protocol.MemberEntry{ID: id})
	}
	for range 2 {
		m.do(protocol.EntryMemberRemove, &protocol.MemberRemoveEntry{ID: "a"})
	}
	if got := m.s.Members(); len(got) != 1 || got[0].ID != "b" {
		t.Errorf("members %v", got)
	}
}
