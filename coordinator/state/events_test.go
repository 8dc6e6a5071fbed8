package state

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/protocol"
)

// events lists the events of a job: kind, time, round, step and seconds, and the process.
func (m *machine) events(id uint64) (list []string) {
	for _, e := range m.s.Job(id).Info().Events {
		list = append(list, fmt.Sprintf("%s at %v, round %d, step %d, %v s, %s%s", e.Kind, e.Time, e.Round, e.Step,
			e.Seconds, e.Worker, e.Coordinator))
	}
	return list
}

func (m *machine) wantEvents(id uint64, want ...string) {
	m.t.Helper()
	if got := m.events(id); !slices.Equal(got, want) {
		m.t.Errorf("the events are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// lost is an event that the leader knows.
func lost(number uint64, time float64) protocol.NumberedEvent {
	return protocol.NumberedEvent{Number: number, JobEvent: protocol.JobEvent{Time: time, Kind: protocol.EventLost,
		Text: "worker w left", Worker: "w", Round: 3, Step: 4, Seconds: 5}}
}

// TestEventsOfEntries: leaders, quarantines, pauses and resumptions are events of the jobs that they concern, where
// the last commit of the job is.
func TestEventsOfEntries(t *testing.T) {
	m := newMachine(t)
	j := m.start() // at time 3
	queued := m.submit("t2", "queued", 2)
	m.do(protocol.EntryCommit, &protocol.CommitEntry{Epoch: m.s.Epoch(), Job: j.ID, Round: 7, Total: 1, Data: []byte{1},
		Progress: []byte(`{"step":70}`)})
	m.do(protocol.EntryLead, &protocol.LeadEntry{Node: "b", Time: 10, Millis: 500})
	m.do(protocol.EntryLead, &protocol.LeadEntry{Node: "b", Time: 11})
	m.do(protocol.EntryLead, &protocol.LeadEntry{Node: "c"}) // of an earlier build
	suspect := &protocol.SuspectEntry{Epoch: m.s.Epoch(), Worker: "w1", Jobs: []uint64{j.ID, queued.ID}, Reason: "task 3",
		Time: 12, Millis: 250}
	m.do(protocol.EntrySuspect, suspect)
	m.do(protocol.EntrySuspect, suspect) // repeated
	for range 2 {
		m.do(protocol.EntryPause, &protocol.JobEntry{Job: j.ID, Time: 13})
	}
	m.do(protocol.EntryLead, &protocol.LeadEntry{Node: "a", Time: 14})
	for range 2 {
		m.do(protocol.EntryResume, &protocol.JobEntry{Job: j.ID, Time: 20})
	}
	want := []string{
		"leader_changed at 10.5, round 7, step 70, 7.5 s, b",
		"leader_changed at 11, round 7, step 70, 8 s, b",
		"worker_quarantined at 12.25, round 7, step 70, 9.25 s, w1",
		"job_paused at 13, round 7, step 70, 10 s, ",
		"job_resumed at 20, round 7, step 70, 10 s, ",
	}
	m.wantEvents(j.ID, want...)
	m.wantEvents(queued.ID, "worker_quarantined at 12.25, round 0, step 0, 0 s, w1")
	texts := m.s.Job(j.ID).Info().Events
	for i, want := range []string{"coordinator b became the leader after a", "coordinator b became the leader again",
		"worker w1 was quarantined: task 3"} {
		if texts[i].Text != want {
			t.Errorf("%q, want %q", texts[i].Text, want)
		}
	}
	m.do(protocol.EntryCancel, &protocol.JobEntry{Job: j.ID, Time: 21})
	suspect.Epoch, suspect.Worker = m.s.Epoch(), "w2"
	m.do(protocol.EntrySuspect, suspect) // it has ended
	m.wantEvents(j.ID, want...)
}

// TestEventsOfALeader: each entry about a job that its leader proposes brings events. Each event is taken once.
func TestEventsOfALeader(t *testing.T) {
	for name, end := range map[string]func(m *machine, epoch, job uint64, events []protocol.NumberedEvent){
		"cancel": func(m *machine, epoch, job uint64, events []protocol.NumberedEvent) {
			m.do(protocol.EntryCancel, &protocol.JobEntry{Job: job, Events: events, EventsEpoch: epoch})
		},
		"finish": func(m *machine, epoch, job uint64, events []protocol.NumberedEvent) {
			m.do(protocol.EntryFinish, &protocol.FinishEntry{Epoch: epoch, Job: job, Events: events})
		},
		"fail": func(m *machine, epoch, job uint64, events []protocol.NumberedEvent) {
			m.do(protocol.EntryJobState, &protocol.JobStateEntry{Epoch: epoch, Job: job, State: protocol.Failed,
				Events: events})
		},
	} {
		m := newMachine(t)
		j, epoch := m.start(), m.s.Epoch()
		all := []protocol.NumberedEvent{lost(1, 5), lost(2, 6), lost(3, 4), lost(4, 8), lost(5, 9), lost(6, 10)}
		m.do(protocol.EntryCommit, &protocol.CommitEntry{Epoch: epoch, Job: j.ID, Round: 1, Total: 1, Data: []byte{1},
			Events: all[:1]})
		result := &protocol.ResultEntry{Epoch: epoch, Job: j.ID, Round: 3, Of: 4, Digest: digest('c'), Events: all[:2]}
		m.do(protocol.EntryResult, result)
		result.Events = all[:3]
		m.do(protocol.EntryResult, result) // repeated, with one more
		result.Events = nil
		m.do(protocol.EntryResult, result)
		m.do(protocol.EntryPause, &protocol.JobEntry{Job: j.ID, Time: 7, Events: all[2:4], EventsEpoch: epoch})
		m.do(protocol.EntryResume, &protocol.JobEntry{Job: j.ID, Time: 8, Events: all[4:5], EventsEpoch: epoch})
		m.do(protocol.EntryJobState, &protocol.JobStateEntry{Epoch: epoch, Job: j.ID, State: protocol.Running,
			Events: all[3:5]})
		if n := m.s.Job(j.ID).Noted(epoch); n != 5 || m.s.Job(j.ID).Noted(epoch+1) != 0 {
			t.Errorf("%d events are known", n)
		}
		end(m, epoch, j.ID, all[4:])
		times := []float64{4, 5, 6, 7, 8, 8, 9, 10}
		info := m.s.Job(j.ID).Info()
		if len(info.Events) != len(times) || info.EventsDropped != 0 {
			t.Fatalf("%s: %d dropped, %+v", name, info.EventsDropped, info.Events)
		}
		for i, e := range info.Events {
			if e.Time != times[i] {
				t.Errorf("%s: event %d is of %v, want %v", name, i, e.Time, times[i])
			}
		}
	}
}

// TestEventsThatAreNotTaken: events of an earlier leadership, twice the same, not valid, and left out by the leader.
func TestEventsThatAreNotTaken(t *testing.T) {
	m := newMachine(t)
	j, old := m.start(), m.s.Epoch()
	now := m.lead("b")
	round := uint64(0)
	commit := func(events ...protocol.NumberedEvent) *Job {
		t.Helper()
		round++
		return m.do(protocol.EntryCommit, &protocol.CommitEntry{Epoch: now, Job: j.ID, Round: round, Total: 1,
			Data: []byte{1}, Events: events}).(*Job)
	}
	commit(lost(1, 3))
	m.do(protocol.EntryPause, &protocol.JobEntry{Job: j.ID, Time: 4, Events: []protocol.NumberedEvent{lost(9, 2)},
		EventsEpoch: old})
	m.do(protocol.EntryResume, &protocol.JobEntry{Job: j.ID, Time: 5})
	m.do(protocol.EntryJobState, &protocol.JobStateEntry{Epoch: now, Job: j.ID, State: protocol.Running, Time: 6})
	wrong := lost(5, 8)
	wrong.Kind = "Wrong"
	got := commit(lost(1, 3), lost(4, 7), wrong) // 2 and 3 are missing
	if got.Round != round || got.Noted(now) != 5 || got.events.dropped != 3 || len(got.events.events) != 4 {
		t.Errorf("round %d, noted %d, dropped %d: %+v", got.Round, got.Noted(now), got.events.dropped, got.events.events)
	}
	early := &protocol.CommitEntry{Epoch: now, Job: j.ID, Round: round + 1, Total: 2, Data: []byte{1},
		Events: []protocol.NumberedEvent{lost(6, 9)}}
	if err := m.refused(protocol.EntryCommit, early); !errors.Is(err, ErrInvalid) {
		t.Errorf("events with the first chunk: %v", err)
	}
}

// TestEventsAreBounded: the first and the newest events are kept, the others are counted, and texts are short.
func TestEventsAreBounded(t *testing.T) {
	m := newMachine(t)
	j := m.start()
	const all = 500
	for i := range all {
		m.do(protocol.EntryLead, &protocol.LeadEntry{Node: strings.Repeat("é", 400), Time: int64(i + 1)})
	}
	info := m.s.Job(j.ID).Info()
	if len(info.Events) != protocol.MaxEvents || info.EventsDropped != all-protocol.MaxEvents {
		t.Fatalf("%d events, %d dropped", len(info.Events), info.EventsDropped)
	}
	for i, e := range info.Events {
		want := i + 1
		if i >= protocol.FirstEvents {
			want = all - protocol.MaxEvents + i + 1
		}
		if e.Time != float64(want) || e.Check() != nil {
			t.Errorf("event %d: %+v", i, e)
		}
	}
	if b := encode(t, m.s); !bytes.Equal(b, encode(t, decode(t, b))) {
		t.Error("a snapshot changes the events")
	}
}

// TestSnapshotWithoutEvents: a snapshot of a version without events is read. Writing it again gives the same bytes.
func TestSnapshotWithoutEvents(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("testdata", "without-events.golden"))
	if err != nil {
		t.Fatal(err)
	}
	s := decode(t, b)
	if len(s.Jobs()) < 4 {
		t.Fatalf("%d jobs", len(s.Jobs()))
	}
	for _, j := range s.Jobs() {
		if info := j.Info(); len(info.Events) > 0 || info.EventsDropped > 0 {
			t.Errorf("%v has events: %+v", j, info.Events)
		}
	}
	if !bytes.Equal(encode(t, s), b) {
		t.Error("it is written otherwise")
	}
}

// TestSnapshotBoundsOfEvents: events in a snapshot are sorted and within their bounds, and no empty list takes bytes.
func TestSnapshotBoundsOfEvents(t *testing.T) {
	list := func(n int) (l eventList) {
		for i := range n {
			l.events = append(l.events, lost(0, float64(i)).JobEvent)
		}
		return l
	}
	long := list(1)
	long.events[0].Text = strings.Repeat("x", 300)
	unsorted := list(2)
	slices.Reverse(unsorted.events)
	for what, c := range map[string]struct {
		list    eventList
		private bool
		want    string // in the error; empty: it is read
	}{
		"nothing":             {list: list(0)},
		"a private job":       {list: list(0), private: true},
		"events":              {list: list(3)},
		"all events":          {list: list(protocol.MaxEvents), private: true},
		"only dropped events": {list: eventList{dropped: 7, epoch: 2, number: 7}},
		"too many":            {list: list(protocol.MaxEvents + 1), want: "events: want at most 64, got 65"},
		"a long text":         {list: long, want: "the text of an event: want UTF-8 of at most 200 bytes"},
		"out of order":        {list: unsorted, want: "the events are not sorted by time"},
	} {
		s := *golden(t)
		withJob(0, func(j *Job) { j.events, j.Private = c.list, c.private })(&s)
		b := encode(t, &s)
		read, err := Decode(bytes.NewReader(b))
		if c.want == "" && (err != nil || !bytes.Equal(encode(t, read), b) ||
			len(read.jobs[0].events.events) != len(c.list.events)) {
			t.Errorf("%s: %v", what, err)
		}
		if c.want != "" && (!errors.Is(err, ErrSnapshot) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %s", what, err, c.want)
		}
	}
}

// TestEventsOfAnyEntries: whatever entries bring, each event is kept or counted once, and the list is sorted and
// bounded.
func TestEventsOfAnyEntries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l eventList
		var highest, total uint64
		for range rapid.IntRange(0, 60).Draw(t, "entries") {
			from := rapid.Uint64Range(max(highest, 3)-2, highest+2).Draw(t, "from")
			var events []protocol.NumberedEvent
			for i := range rapid.Uint64Range(1, 5).Draw(t, "events") {
				e := lost(from+i, float64(rapid.IntRange(0, 50).Draw(t, "time")))
				if rapid.IntRange(0, 9).Draw(t, "wrong") == 0 {
					e.Kind = "?"
				}
				events = append(events, e)
			}
			before, was := l, fmt.Sprint(l.events)
			l = l.noted(7, events)
			if fmt.Sprint(before.events) != was {
				t.Fatal("a list that was handed out changed")
			}
			highest = max(highest, events[len(events)-1].Number)
			total = highest
			if l.number != highest || uint64(len(l.events))+l.dropped != total || len(l.events) > protocol.MaxEvents ||
				!slices.IsSortedFunc(l.events, func(a, b protocol.JobEvent) int { return int(a.Time - b.Time) }) {
				t.Fatalf("after %+v: number %d, %d dropped, %+v", events, l.number, l.dropped, l.events)
			}
		}
		if other := l.noted(6, []protocol.NumberedEvent{lost(1000, 1)}); other.number != highest && highest > 0 {
			t.Fatal("events of an earlier leadership were taken")
		}
	})
}
