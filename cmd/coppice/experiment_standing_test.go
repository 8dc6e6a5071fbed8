package main

import (
	"testing"

	"github.com/coppice-ldl/coppice/protocol"
)

// TestStandings: a job that was cancelled counts until a later submission has its cells, those of
// its cells that ended always, and a cell that is run again once.
func TestStandings(t *testing.T) {
	job := func(dataset string, state protocol.JobState, at int64) protocol.JobInfo {
		return protocol.JobInfo{Name: dataset, Experiment: "e", Dataset: dataset, State: state, CellCount: 4, Submitted: at}
	}
	some := func(dataset string, state protocol.JobState, at int64, collected, again int) protocol.JobInfo {
		j := job(dataset, state, at)
		j.Gathered, j.CellsAgain = collected, again
		return j
	}
	sent := func(submission string, j protocol.JobInfo) protocol.JobInfo {
		j.Submission = submission
		return j
	}
	left := func(dataset string, state protocol.JobState, at int64, collected, notRun int) protocol.JobInfo {
		j := some(dataset, state, at, collected, 0)
		j.CellsNotRun = notRun
		return j
	}
	for _, c := range []struct {
		jobs        []protocol.JobInfo // the newest first
		state       string
		done, cells int
	}{
		{[]protocol.JobInfo{sent("u", job("b", protocol.Done, 1)), sent("t", some("b", protocol.Cancelled, 1, 3, 0))}, "done", 7, 7},
		{[]protocol.JobInfo{sent("u", job("b", protocol.Done, 1)), sent("t", left("b", protocol.Done, 1, 0, 3))}, "done", 5, 5},
		{[]protocol.JobInfo{sent("t", job("b", protocol.Done, 1)), sent("t", some("b", protocol.Cancelled, 1, 3, 0))}, "cancelled", 7, 8},
		{[]protocol.JobInfo{sent("u", job("b", protocol.Done, 1)), sent("t", job("b", protocol.Failed, 2))}, "done", 4, 4},
		{[]protocol.JobInfo{left("b", protocol.Done, 1, 0, 3), left("a", protocol.Running, 1, 3, 2)}, "running", 2, 8},
		{[]protocol.JobInfo{job("b", protocol.Done, 2), left("b", protocol.Done, 1, 0, 3)}, "done", 5, 5},
		{[]protocol.JobInfo{left("b", protocol.Cancelled, 1, 3, 1)}, "cancelled", 2, 4},
		{[]protocol.JobInfo{job("b", protocol.Done, 1), job("a", protocol.Done, 1)}, "done", 8, 8},
		{[]protocol.JobInfo{job("b", protocol.Cancelled, 1), job("a", protocol.Done, 1)}, "cancelled", 4, 8},
		{[]protocol.JobInfo{some("b", protocol.Cancelled, 1, 3, 0), job("a", protocol.Done, 1)}, "cancelled", 7, 8},
		{[]protocol.JobInfo{some("b", protocol.Running, 2, 0, 0), some("b", protocol.Cancelled, 1, 3, 0)}, "running", 3, 7},
		{[]protocol.JobInfo{some("b", protocol.Running, 2, 1, 3), job("b", protocol.Done, 1)}, "running", 2, 5},
		{[]protocol.JobInfo{some("b", protocol.Done, 2, 0, 4), job("b", protocol.Done, 1)}, "done", 4, 4},
		{[]protocol.JobInfo{job("b", protocol.Done, 2), job("b", protocol.Cancelled, 1), job("a", protocol.Done, 1)}, "done", 8, 8},
		{[]protocol.JobInfo{job("b", protocol.Done, 2), job("b", protocol.Failed, 1), job("a", protocol.Failed, 1)}, "failed", 4, 8},
		{[]protocol.JobInfo{job("b", protocol.Failed, 2), job("b", protocol.Done, 1)}, "failed", 4, 8},
	} {
		list := standingsOf(c.jobs)
		if len(list) != 1 || list[0].State != c.state || list[0].Done != c.done || list[0].Cells != c.cells {
			t.Errorf("%+v: %+v", c.jobs, list)
		}
	}
}

// TestTimeLeft: the times of cells tell how long an experiment takes still; where none is known, how many
// cells have ended meanwhile does.
func TestTimeLeft(t *testing.T) {
	job := protocol.JobInfo{Name: "a", Experiment: "e", Dataset: "a", State: protocol.Running, CellCount: 10, Gathered: 4, CellsLeft: 90}
	other := job
	other.Dataset, other.CellsLeft = "b", 30
	if got := standingsOf([]protocol.JobInfo{job, other})[0].left(0, 10); got != 120 {
		t.Errorf("%v s are left, want 120", got)
	}
	job.CellsLeft = 0
	p := standingsOf([]protocol.JobInfo{job})[0]
	if got := p.left(1, 10); got != 20 {
		t.Errorf("%v s are left, want 20", got)
	}
	if got := p.left(4, 10); got != 0 {
		t.Errorf("%v s are left where nothing tells", got)
	}
}

// TestLineOfWaiting: while a job waits nothing says how long it takes still.
func TestLineOfWaiting(t *testing.T) {
	p := &standing{Done: 1, Cells: 4, Left: 6, Phases: []string{"a: runs"}}
	for waits, want := range map[string]string{
		"":                   " 25 %  1 of 4 runs  ETA 6.0 s  a: runs",
		"  waits: no worker": " 25 %  1 of 4 runs  a: runs  waits: no worker",
	} {
		if got := p.line(0, 10, waits); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
