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
		j.Collected, j.CellsAgain = collected, again
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
