package api

import (
	"encoding/json"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/coordinator/dispatch"
	"github.com/coppice-ldl/coppice/coordinator/jobs"
	"github.com/coppice-ldl/coppice/protocol"
)

// TestEvents: a job, and a stream of its changes, have its events. Lists have them only if they are asked for.
func TestEvents(t *testing.T) {
	s := newSite(t)
	s.put("art", 200)
	j := s.submit("job")
	l := s.watch("job")
	l.next(protocol.Queued)
	s.propose(protocol.EntryJobState, protocol.JobStateEntry{Epoch: s.cfg.Store.State().Epoch(), Job: j.ID,
		State: protocol.Running, Time: 5, Events: []protocol.NumberedEvent{{Number: 2, JobEvent: protocol.JobEvent{
			Time: 4, Kind: protocol.EventLost, Text: "worker <w> left", Worker: "<w>", Round: 1, Step: 2, Seconds: 3}}}})
	if got := l.next(protocol.Running); len(got.Events) != 1 || got.EventsDropped != 1 {
		t.Errorf("the stream tells of %+v", got.Events)
	}
	var one protocol.JobInfo
	s.get("POST", "/v1/jobs/job/pause", nil, &one)
	s.get("GET", "/v1/jobs/job", nil, &one)
	kinds := func(j *protocol.JobInfo) (kinds []protocol.EventKind) {
		for _, e := range j.Events {
			kinds = append(kinds, e.Kind)
		}
		return kinds
	}
	want := []protocol.EventKind{protocol.EventLost, protocol.EventPaused}
	if !slices.Equal(kinds(&one), want) || one.Events[0].Text != "worker <w> left" || one.Events[0].Seconds != 3 {
		t.Errorf("%+v", one.Events)
	}
	for query, want := range map[string][]protocol.EventKind{"": nil, "?full=true": want} {
		var list protocol.JobList
		s.get("GET", "/v1/jobs"+query, nil, &list)
		if got := list.Jobs[0]; !slices.Equal(kinds(&got), want) || (got.EventsDropped == 0) != (want == nil) {
			t.Errorf("jobs%s: %+v, %d dropped", query, got.Events, got.EventsDropped)
		}
	}
}

// TestEventsOfTheLeader: events that only the leader knows are shown with the job, and the entry that pauses or cancels
// the job brings them into the log.
func TestEventsOfTheLeader(t *testing.T) {
	s := newSite(t)
	s.put("art", 200)
	j := s.submit("job")
	epoch := s.cfg.Store.State().Epoch()
	s.propose(protocol.EntryJobState, protocol.JobStateEntry{Epoch: epoch, Job: j.ID, State: protocol.Running, Time: 5})
	journal, cfg := jobs.NewJournal(epoch, s.cfg.Store.State), s.cfg
	cfg.Running.Journal = func() *jobs.Journal { return journal }
	h := inClear(cfg)
	texts := func(method, path string) (texts []string) {
		t.Helper()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
		var info protocol.JobInfo
		if err := json.Unmarshal(w.Body.Bytes(), &info); err != nil || w.Code != 200 {
			t.Fatalf("%s %s: status %d, %s", method, path, w.Code, w.Body)
		}
		for _, e := range info.Events {
			texts = append(texts, e.Text)
		}
		return texts
	}
	journal.Note(j.ID, dispatch.Fault{Cause: dispatch.Unusable, Worker: "w1", Reason: "left"}, protocol.JobEvent{Time: 7})
	if got := texts("GET", "/v1/jobs/job"); !slices.Equal(got, []string{"worker w1 left"}) {
		t.Errorf("shown: %q", got)
	}
	if got := s.cfg.Store.State().Job(j.ID).Noted(epoch); got != 0 {
		t.Errorf("the log has event %d", got)
	}
	want := []string{"worker w1 left", "the job was paused"}
	if got := texts("POST", "/v1/jobs/job/pause"); !slices.Equal(got, want) {
		t.Errorf("paused: %q", got)
	}
	journal.Note(j.ID, dispatch.Fault{Cause: dispatch.Unusable, Worker: "w2", Reason: "left"},
		protocol.JobEvent{Time: 1 << 40})
	if got := texts("POST", "/v1/jobs/job/cancel"); !slices.Equal(got, append(want, "worker w2 left")) {
		t.Errorf("cancelled: %q", got)
	}
}
