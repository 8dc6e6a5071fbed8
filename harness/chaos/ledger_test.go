package chaos

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
)

// done is a job that ended with a model.
func done(t *testing.T, id uint64, name, digest string) protocol.JobInfo {
	t.Helper()
	outcome, err := json.Marshal(pipeline.Outcome{ModelDigest: digest})
	if err != nil {
		t.Fatal(err)
	}
	return protocol.JobInfo{ID: id, Name: name, State: protocol.Done, Outcome: outcome,
		Models: []protocol.ModelRef{{Digest: digest}}}
}

func TestAudit(t *testing.T) {
	right := &task{digest: "right"}
	good := done(t, 7, "one", "right")
	with := func(change func(*protocol.JobInfo)) protocol.JobInfo {
		j := good
		change(&j)
		return j
	}
	tests := map[string]struct {
		known acknowledged
		job   protocol.JobInfo
		says  string // empty: all is well
	}{
		"done":        {acknowledged{}, good, ""},
		"running":     {acknowledged{}, with(func(j *protocol.JobInfo) { j.State = protocol.Running }), ""},
		"lost":        {acknowledged{}, with(func(j *protocol.JobInfo) { j.ID = 8 }), "is lost"},
		"other model": {acknowledged{}, done(t, 7, "one", "wrong"), "without faults"},
		"other registry": {acknowledged{}, with(func(j *protocol.JobInfo) {
			j.Models = []protocol.ModelRef{{Digest: "wrong"}}
		}), "without faults"},
		"failed": {acknowledged{}, with(func(j *protocol.JobInfo) {
			j.State, j.Error = protocol.Failed, "no reason"
		}), "no reason"},
		"renamed": {acknowledged{}, with(func(j *protocol.JobInfo) { j.Name = "two" }), "changed from one to two"},
		"suspect": {acknowledged{}, with(func(j *protocol.JobInfo) { j.Suspect = "a liar" }), "a liar"},
		"back to work": {acknowledged{final: protocol.Done}, with(func(j *protocol.JobInfo) {
			j.State = protocol.Running
		}), "had ended as done, but is running"},
		"alive again": {acknowledged{cancelled: true}, good, "was cancelled"},
		"cancelled": {acknowledged{cancelled: true}, with(func(j *protocol.JobInfo) {
			j.State, j.Models = protocol.Cancelled, nil
		}), ""},
		"cancelled with a model": {acknowledged{cancelled: true}, with(func(j *protocol.JobInfo) {
			j.State = protocol.Cancelled
		}), "has a model"},
		"deleted":        {acknowledged{deleting: true, deleted: true}, with(func(j *protocol.JobInfo) { j.ID = 8 }), ""},
		"on its way out": {acknowledged{deleting: true}, good, ""},
		"perhaps gone":   {acknowledged{deleting: true}, with(func(j *protocol.JobInfo) { j.ID = 8 }), ""},
		"back again":     {acknowledged{deleting: true, deleted: true}, good, "was deleted, but exists and is done"},
		"goes on": {acknowledged{paused: true}, with(func(j *protocol.JobInfo) {
			j.State = protocol.Running
		}), "was paused"},
	}
	for name, x := range tests {
		x.known.name, x.known.task = "one", right
		err := audit(map[uint64]acknowledged{7: x.known}, []protocol.JobInfo{x.job})
		if x.says == "" && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if x.says != "" && (!errors.Is(err, ErrFailed) || !strings.Contains(err.Error(), x.says)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// At the end there is no job that nobody asked for, and none that has not ended.
func TestComplete(t *testing.T) {
	known := map[uint64]acknowledged{7: {name: "one", task: &task{digest: "d"}}}
	one, two := done(t, 7, "one", "d"), done(t, 9, "one-again", "d")
	if err := complete(known, []protocol.JobInfo{one}); err != nil {
		t.Error(err)
	}
	if err := complete(known, []protocol.JobInfo{one, two}); !errors.Is(err, ErrFailed) ||
		!strings.Contains(err.Error(), "no client") {
		t.Errorf("a second job: %v", err)
	}
	one.State = protocol.Running
	if err := complete(known, []protocol.JobInfo{one}); !errors.Is(err, ErrFailed) {
		t.Errorf("a job that runs: %v", err)
	}
}

func TestLedger(t *testing.T) {
	l := newLedger()
	j := done(t, 3, "one", "d")
	l.submitted(&j, &task{})
	l.told(3, func(a *acknowledged) { a.final = protocol.Done })
	l.submitted(&j, &task{}) // its answer came twice
	if got := l.snapshot(); len(got) != 1 || got[3].final != protocol.Done {
		t.Errorf("%+v", got)
	}
}
