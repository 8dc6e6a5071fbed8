package jobs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/coordinator/dispatch"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/protocol"
)

// eventTexts lists the texts of events.
func eventTexts(events []protocol.NumberedEvent) (texts []string) {
	for _, e := range events {
		texts = append(texts, e.Text)
	}
	return texts
}

// TestJournal: faults of one kind with one worker are one event until it is sent, and then only after a quiet time, or
// at the end of the job.
func TestJournal(t *testing.T) {
	l := newLab(t)
	j := l.running("one")
	now := time.Unix(1000, 0)
	note := func(cause dispatch.Cause, worker, reason string, tasks int) {
		l.cfg.Journal.Note(j.ID, dispatch.Fault{Cause: cause, Worker: worker, Reason: reason, Tasks: tasks},
			protocol.JobEvent{Time: protocol.Seconds(now.UnixMilli()), Round: 3, Step: 4, Seconds: 5})
	}
	check := func(all bool, want ...string) []protocol.NumberedEvent {
		t.Helper()
		events := l.cfg.Journal.take(j.ID, all, now)
		if got := eventTexts(events); !slices.Equal(got, want) {
			t.Errorf("the events are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		return events
	}
	check(true)
	note(dispatch.Unusable, "w2", "lost its connection", 7)
	note(dispatch.TaskFailed, "w1", "the disk is full", 1)
	note(dispatch.Unusable, "w2", "left", 5)
	note(dispatch.TaskFailed, "w1", "again", 1)
	note(dispatch.TaskFailed, "", "", 1)
	first := []string{
		"worker w2 lost its connection 2 times; 12 tasks were given to other workers",
		"2 tasks were tried again after a failure on worker w1: the disk is full",
		"1 task was tried again after a failure on the leader",
	}
	_, shown := l.cfg.Journal.Unrecorded(j.ID)
	if got := eventTexts(shown); !slices.Equal(got, first) {
		t.Errorf("shown: %q", got)
	}
	events := check(false, first...)
	if e := events[0]; e.Number != 1 || events[2].Number != 3 || e.Time != 1000 || e.Round != 3 || e.Step != 4 ||
		e.Seconds != 5 || e.Worker != "w2" || e.Kind != protocol.EventLost || e.Check() != nil {
		t.Errorf("%+v", e)
	}
	now = now.Add(sendAgain / 2)
	note(dispatch.Unusable, "w2", "left", 0) // not soon again
	note(dispatch.TooSlow, "w3", "", 1)
	check(false) // the first entry is on its way
	now = now.Add(sendAgain)
	check(false, append(first, "worker w3 was too slow; 1 task was given to other workers")...)
	l.propose(protocol.EntryPause, protocol.JobEntry{Job: j.ID, EventsEpoch: l.cfg.Epoch, Events: events})
	now = now.Add(sendAgain)
	check(false, "worker w3 was too slow; 1 task was given to other workers")
	check(true, "worker w3 was too slow; 1 task was given to other workers", "worker w2 left")
	note(dispatch.JobStopped, "", "no room", 0)
	now = now.Add(quiet)
	events = check(false, "worker w3 was too slow; 1 task was given to other workers", "worker w2 left",
		"the job stopped and continues from its last commit: no room")
	l.propose(protocol.EntryCancel, protocol.JobEntry{Job: j.ID, EventsEpoch: l.cfg.Epoch, Events: events})
	if got := l.job(j.ID).Info(); len(got.Events) != 7 || got.EventsDropped != 0 { // one is the pause
		t.Errorf("%d dropped: %+v", got.EventsDropped, got.Events)
	}
	l.cfg.Journal.Note(l.running("two").ID, dispatch.Fault{}, protocol.JobEvent{})
	if len(l.cfg.Journal.jobs) != 1 {
		t.Error("the journal keeps a job that has ended")
	}
	note(dispatch.JobStopped, "", "", 0)
	check(true)
	var none *Journal
	none.Note(j.ID, dispatch.Fault{}, protocol.JobEvent{})
	if epoch, list := none.Unrecorded(j.ID); none.Take(j.ID, true) != nil || epoch != 0 || list != nil {
		t.Error("no journal has events")
	}
}

// TestJournalTexts: every cause has a text that fits into an event, whatever a worker says.
func TestJournalTexts(t *testing.T) {
	for cause := dispatch.Unusable; cause <= dispatch.JobStopped; cause++ {
		for _, times := range []int{1, 3} {
			e := (&trouble{subject: subject{cause, strings.Repeat("w", 99)}, times: times, tasks: times,
				reason: "<b>\x00\xff" + strings.Repeat("ü", 300)}).event()
			if err := e.Check(); err != nil || e.Text == "" || !slices.Contains(protocol.EventKinds(), e.Kind) {
				t.Errorf("cause %d: %+v: %v", cause, e, err)
			}
		}
	}
}

// TestJournalIsBounded: with any faults, entries bring at most so many events, numbers grow, and each fault is in an
// event or is counted by a missing number.
func TestJournalIsBounded(t *testing.T) {
	l := newLab(t)
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		j := l.running(fmt.Sprint("job", n))
		journal := NewJournal(l.cfg.Epoch, l.cfg.Store.State)
		now, highest := time.Unix(1000, 0), uint64(0)
		for range rapid.IntRange(1, 9).Draw(t, "entries") {
			for range rapid.IntRange(0, 40).Draw(t, "faults") {
				journal.Note(j.ID, dispatch.Fault{Cause: dispatch.Cause(rapid.IntRange(0, 6).Draw(t, "cause")),
					Worker: fmt.Sprint("w", rapid.IntRange(0, 30).Draw(t, "worker"))}, protocol.JobEvent{Time: 1})
			}
			now = now.Add(time.Duration(rapid.IntRange(0, 9).Draw(t, "seconds")) * time.Second)
			all := rapid.IntRange(0, 3).Draw(t, "all") == 0
			events := journal.take(j.ID, all, now)
			if len(events) > protocol.MaxEvents || !all && len(events) > protocol.MaxNewEvents {
				t.Fatalf("%d events", len(events))
			}
			last := l.job(j.ID).Noted(l.cfg.Epoch)
			for _, e := range events {
				if e.Number <= last {
					t.Fatalf("event %d follows event %d", e.Number, last)
				}
				last = e.Number
			}
			highest = max(highest, last)
			if len(events) > 0 && rapid.Bool().Draw(t, "is committed") {
				l.propose(protocol.EntryJobState, protocol.JobStateEntry{Epoch: l.cfg.Epoch, Job: j.ID,
					State: protocol.Running, Events: events})
				l.propose(protocol.EntryPause, protocol.JobEntry{Job: j.ID, EventsEpoch: l.cfg.Epoch, Events: events})
				l.propose(protocol.EntryResume, protocol.JobEntry{Job: j.ID})
				l.propose(protocol.EntryJobState, protocol.JobStateEntry{Epoch: l.cfg.Epoch, Job: j.ID,
					State: protocol.Running})
			}
			if p := journal.jobs[j.ID]; p != nil && len(p.sent)+len(p.open) > protocol.MaxEvents {
				t.Fatalf("%d events wait", len(p.sent)+len(p.open))
			}
		}
		l.propose(protocol.EntryCancel, protocol.JobEntry{Job: j.ID, EventsEpoch: l.cfg.Epoch,
			Events: journal.take(j.ID, true, now)})
		if got := l.job(j.ID).Noted(l.cfg.Epoch); got < highest {
			t.Fatalf("the log has event %d, but event %d was sent", got, highest)
		}
	})
}

// TestEventsRideOnEntries: the next commit of a job, the next recorded result and the end of the job bring the events.
func TestEventsRideOnEntries(t *testing.T) {
	l := newLab(t)
	j := l.running("one")
	texts := func() (texts []string) {
		for _, e := range l.job(j.ID).Info().Events {
			texts = append(texts, fmt.Sprintf("%s %s at step %d", e.Kind, e.Worker, e.Step))
		}
		return texts
	}
	c, tr := l.committer(j), &stated{state: make([]byte, protocol.CommitChunk+1)}
	c.began = time.Now().Add(-time.Hour)
	c.d.round, c.d.step, c.d.began = 3, 30, time.Now()
	c.d.fault(dispatch.Fault{Cause: dispatch.Unusable, Worker: "w1", Reason: "left"})
	if err := errors.Join(c.offer(testkit.Context(t), 4, tr), c.settle()); err != nil {
		t.Fatal(err)
	}
	if got := texts(); !slices.Equal(got, []string{"worker_lost w1 at step 30"}) {
		t.Errorf("after a commit: %q", got)
	}
	c.d.fault(dispatch.Fault{Cause: dispatch.Unusable, Worker: "w2", Reason: "left"})
	digest, err := l.blobs.Folder.Put([]byte("a result"))
	if err != nil {
		t.Fatal(err)
	}
	l.cfg.Journal.jobs[j.ID].at = time.Time{} // sendAgain is over
	results := &Results{Epoch: l.cfg.Epoch, Store: l.cfg.Store, Blobs: l.blobs, Journal: l.cfg.Journal}
	if err := results.Record(testkit.Context(t), &protocol.Result{Stamp: protocol.Stamp{Job: j.ID, Round: 4},
		Digest: digest, Bytes: 8}, 2, false); err != nil {
		t.Fatal(err)
	}
	if got := texts(); !slices.Equal(got, []string{"worker_lost w1 at step 30", "worker_lost w2 at step 30"}) {
		t.Errorf("after a result: %q", got)
	}
	if got := l.job(j.ID).Noted(l.cfg.Epoch); got != 2 {
		t.Errorf("%d events are noted", got)
	}
}

// TestEventsOfAFailedJob: a job that fails before its first commit has the events, and why it stopped before.
func TestEventsOfAFailedJob(t *testing.T) {
	l := newLab(t)
	l.dispatcher()
	bad := l.submit("bad", nil)
	l.cfg.Journal.Note(bad.ID, dispatch.Fault{Cause: dispatch.JobStopped, Reason: "no room"}, protocol.JobEvent{Time: 1})
	weights := l.submit("lost", nil)
	weights.Job.Weights = blobs.Sum([]byte("nobody has it"))
	m := New(l.cfg)
	d := &driver{m: m, job: weights, log: l.cfg.Log, round: 5, step: 50, began: time.Now()}
	m.stopped(d, d.run(testkit.Context(t)))
	_, events := l.cfg.Journal.Unrecorded(weights.ID)
	if len(events) != 1 || events[0].Kind != protocol.EventRestarted || events[0].Step != 50 ||
		!strings.Contains(events[0].Text, "the weights to start from cannot be read") {
		t.Errorf("%+v", events)
	}
	failing := *bad
	job := *bad.Job
	job.Params = []byte(`{"trees":-1}`)
	failing.Job = &job
	m.drive(testkit.Context(t), &failing)
	got := l.job(bad.ID).Info()
	if got.State != protocol.Failed || len(got.Events) != 1 || !strings.HasSuffix(got.Events[0].Text, ": no room") {
		t.Errorf("%s: %+v", got.State, got.Events)
	}
}
