package state

import (
	"testing"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/protocol"
)

// TestOf: a job that was cancelled counts until a later submission has its runs; its runs that ended
// count always, and a run that is repeated counts once.
func TestOf(t *testing.T) {
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
		jobs       []protocol.JobInfo // the newest first
		state      string
		done, runs int
	}{
		{[]protocol.JobInfo{sent("u", job("b", protocol.Done, 1)), sent("t", some("b", protocol.Cancelled, 1, 3, 0))},
			"done", 7, 7},
		{[]protocol.JobInfo{sent("u", job("b", protocol.Done, 1)), sent("t", left("b", protocol.Done, 1, 0, 3))},
			"done", 5, 5},
		{[]protocol.JobInfo{sent("t", job("b", protocol.Done, 1)), sent("t", some("b", protocol.Cancelled, 1, 3, 0))},
			"cancelled", 7, 8},
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
		{[]protocol.JobInfo{some("b", protocol.Running, 2, 1, 4)}, "running", 1, 4}, // the earlier job was deleted
		{[]protocol.JobInfo{some("b", protocol.Cancelled, 2, 1, 4), job("a", protocol.Done, 1)}, "cancelled", 5, 8},
		{[]protocol.JobInfo{job("b", protocol.Done, 2), job("b", protocol.Cancelled, 1), job("a", protocol.Done, 1)},
			"done", 8, 8},
		{[]protocol.JobInfo{job("b", protocol.Done, 2), job("b", protocol.Failed, 1), job("a", protocol.Failed, 1)},
			"failed", 4, 8},
		{[]protocol.JobInfo{job("b", protocol.Failed, 2), job("b", protocol.Done, 1)}, "failed", 4, 8},
	} {
		var jobs []Job
		for i := range c.jobs {
			jobs = append(jobs, Job{JobInfo: &c.jobs[i]})
		}
		if x := Of(jobs); x.Name != "e" || string(x.State) != c.state || x.Done != c.done || x.Runs != c.runs {
			t.Errorf("%+v: %+v", c.jobs, x)
		}
	}
}

// TestEstimateOfJobs: an experiment has an estimate if it runs and a job computes, of the runs of all its jobs.
func TestEstimateOfJobs(t *testing.T) {
	a := Job{
		&protocol.JobInfo{Name: "e.a", Experiment: "e", Dataset: "a", State: protocol.Running, CellCount: 10, Gathered: 4,
			Progress: &round.Progress{Phase: "runs", Step: 5}},
		[]Runs{{Method: "m", Dataset: "a", All: 10, Ended: 4, Timed: 4, Seconds: 40, Running: []float64{1, 6}}},
	}
	b := Job{
		&protocol.JobInfo{Name: "e.b", Experiment: "e", Dataset: "b", State: protocol.Queued, CellCount: 2},
		[]Runs{{Method: "m", Dataset: "b", All: 2, Timed: 1, Seconds: 9}},
	}
	again := Job{
		&protocol.JobInfo{Name: "e.b.2", Experiment: "e", Dataset: "b", State: protocol.Cancelled, Submission: "before",
			CellCount: 9, Gathered: 1, Error: "x"},
		[]Runs{{Method: "m", Dataset: "b", All: 9, Ended: 1, Timed: 1, Seconds: 11}},
	}
	x := Of([]Job{a, b, again})
	// 4 runs of 10 s wait and two have 9 and 4 s left; two runs of (9 + 11) / 2 s wait; two are computed at a time.
	if x.SecondsLeft != (40+9+4+20)/2. || x.EstimatedFrom != "from 5 of 13 runs" || x.Done != 6 || x.Runs != 13 ||
		len(x.Errors) != 0 {
		t.Errorf("%+v", x)
	}
	a.JobInfo.Waiting = "no worker"
	if x = Of([]Job{a, b}); x.SecondsLeft != 0 || x.Waiting != "no worker" || x.Phases[0] != "e.a: runs" {
		t.Errorf("while a job waits: %+v", x)
	}
	a.JobInfo.Waiting, a.Runs[0].Running = "", nil
	if x = Of([]Job{a, b}); x.SecondsLeft != 0 || x.EstimatedFrom != "" {
		t.Errorf("while nothing is computed: %+v", x)
	}
}

// TestEstimateWithoutEarlierJob: if the job was deleted that had the runs before, an estimate counts them once.
func TestEstimateWithoutEarlierJob(t *testing.T) {
	j := Job{
		&protocol.JobInfo{Name: "e.a", Experiment: "e", Dataset: "a", State: protocol.Running, CellCount: 3, CellsAgain: 3,
			Gathered: 1},
		[]Runs{{Method: "m", Dataset: "a", All: 3, Ended: 1, Timed: 1, Seconds: 5, Running: []float64{1}}},
	}
	if x := Of([]Job{j}); x.EstimatedFrom != "from 1 of 3 runs" || x.SecondsLeft != 9 {
		t.Errorf("%+v", x)
	}
}

// TestNewestJob: a submission that repeats a failed job is seen, although the number of jobs and the outline stay.
func TestNewestJob(t *testing.T) {
	job := func(id uint64, dataset string, state protocol.JobState, submission string) Job {
		return Job{JobInfo: &protocol.JobInfo{ID: id, Experiment: "e", Dataset: dataset, State: state, Submission: submission,
			Submitted: int64(id), Outline: "o", CellCount: 4}}
	}
	failed, other := job(1, "a", protocol.Failed, "t"), job(2, "b", protocol.Running, "t")
	before, after := Of([]Job{other, failed}), Of([]Job{job(3, "a", protocol.Running, "u"), other, failed})
	if before.Newest != 2 || after.Newest != 3 || before.Jobs != after.Jobs {
		t.Errorf("%+v, then %+v", before, after)
	}
}

// TestEstimateOfRepeatedRuns: a run that is repeated is one of the runs that the estimate names, and has not ended.
func TestEstimateOfRepeatedRuns(t *testing.T) {
	before := Job{
		&protocol.JobInfo{ID: 1, Experiment: "e", Dataset: "a", State: protocol.Done, CellCount: 8},
		[]Runs{{Method: "m", Dataset: "a", All: 8, Ended: 8}},
	}
	again := Job{
		&protocol.JobInfo{ID: 2, Experiment: "e", Dataset: "a", State: protocol.Running, Submission: "u", CellCount: 4,
			CellsAgain: 4, Gathered: 1},
		[]Runs{{Method: "m", Dataset: "a", All: 4, Ended: 1, Timed: 1, Seconds: 10, Running: []float64{4}}},
	}
	if x := Of([]Job{again, before}); x.Done != 5 || x.Runs != 8 || x.SecondsLeft != 26 ||
		x.EstimatedFrom != "from 5 of 8 runs" {
		t.Errorf("%+v", x)
	}
	again.JobInfo.State, again.Runs[0].Running = protocol.Cancelled, nil
	third := Job{
		&protocol.JobInfo{ID: 3, Experiment: "e", Dataset: "a", State: protocol.Running, Submission: "v", CellCount: 3,
			CellsAgain: 3},
		[]Runs{{Method: "m", Dataset: "a", All: 3, Running: []float64{4}}},
	}
	if x := Of([]Job{third, again, before}); x.Runs != 8 || x.SecondsLeft != 26 || x.EstimatedFrom != "from 5 of 8 runs" {
		t.Errorf("after a cancelled job: %+v", x)
	}
}
