package state

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/coppice-ldl/coppice/protocol"
)

// Job is what is known of a job of an experiment.
type Job struct {
	*protocol.JobInfo
	Runs []Runs // by method of the job; needed only if a job is running
}

// order lists states of jobs: the state of an experiment is the first that one of its jobs has.
var order = []protocol.JobState{protocol.Running, protocol.Queued, protocol.Paused, protocol.Failed, protocol.Cancelled, protocol.Done}

// Of says how far the experiment of some jobs is; the newest job comes first, and there is one at least. If a later
// submission has a job on the same dataset, only the runs that have ended count of a job that failed or was cancelled,
// and runs that were not run do not count: the later job has the others.
func Of(jobs []Job) *protocol.Experiment {
	x := &protocol.Experiment{Name: jobs[0].Experiment, Ownership: protocol.Ownership{Owner: jobs[0].Owner}, State: jobs[0].State, Submitted: jobs[0].Submitted, Outline: jobs[0].Outline}
	newest := make(map[string]*protocol.JobInfo) // of the last submission, by dataset
	oldest := make(map[string]int)               // the first job, by contents of a dataset
	for i := range jobs {
		oldest[contents(jobs[i].JobInfo)] = i
	}
	var runs []Runs
	at := make(map[[2]string]int) // in runs, by method and dataset
	computing := 0
	for i := range jobs {
		j := &jobs[i]
		if newest[j.Dataset] == nil {
			newest[j.Dataset] = j.JobInfo
		}
		again := j.CellsAgain
		if oldest[contents(j.JobInfo)] == i { // the job that had these runs was deleted
			again = 0
		}
		late := j.Submission != newest[j.Dataset].Submission || j.Submitted < newest[j.Dataset].Submitted
		ended := j.Gathered - j.CellsNotRun
		x.Private = x.Private || j.Private
		x.Submitted, x.Index, x.Newest = min(x.Submitted, j.Submitted), max(x.Index, j.Index), max(x.Newest, j.ID)
		over := j.State == protocol.Failed || j.State == protocol.Cancelled
		for _, r := range j.Runs {
			if over {
				r.All = r.Ended
			}
			if again == j.CellCount { // an earlier job has all of these runs, too
				r.Ended, r.All = r.Ended-r.All, 0
			}
			computing += len(r.Running)
			of := [2]string{r.Method, r.Dataset}
			if k, ok := at[of]; ok {
				runs[k].add(&r)
			} else {
				at[of], runs = len(runs), append(runs, r)
			}
		}
		if over && late {
			ended -= min(ended, again)
			x.Done, x.Runs = x.Done+ended, x.Runs+ended
			continue
		}
		x.Jobs++
		if slices.Index(order, j.State) < slices.Index(order, x.State) {
			x.State = j.State
		}
		x.Runs += j.CellCount - again
		if late {
			x.Runs -= j.CellsNotRun
		} else {
			x.NotRun += j.CellsNotRun
		}
		switch {
		case over:
			if j.Error != "" {
				x.Errors = append(x.Errors, fmt.Sprintf("job %s failed: %s", j.Name, j.Error))
			}
			x.Done += ended - min(ended, again)
			continue
		case j.State == protocol.Done:
			ended = j.CellCount - j.CellsNotRun
		case j.State == protocol.Running && j.Progress != nil:
			ended = max(j.Gathered, int(j.Progress.Step)) - j.CellsNotRun
			x.Phases = append(x.Phases, j.Name+": "+j.Progress.Phase)
		}
		x.Done += ended - again // they are not done until they have been run again
		if j.State == protocol.Running {
			x.Waiting = cmp.Or(x.Waiting, j.Waiting)
		}
	}
	if x.State == protocol.Running && x.Waiting == "" && computing > 0 {
		e := EstimateOf(runs, computing)
		x.SecondsLeft, x.EstimatedFrom = e.Seconds, e.From
	}
	return x
}

// contents names the contents of a job's dataset, which may have several names: by its digest if that is known.
func contents(j *protocol.JobInfo) string {
	if j.Job != nil {
		return j.Job.Dataset
	}
	return j.Dataset
}

// add adds the runs of another job, of the same method and dataset. Only a job that has not ended knows the size of its
// dataset.
func (o *Runs) add(r *Runs) {
	o.All, o.Ended, o.Timed, o.Seconds = o.All+r.All, o.Ended+r.Ended, o.Timed+r.Timed, o.Seconds+r.Seconds
	o.Size = max(o.Size, r.Size)
	o.Running = append(slices.Clip(o.Running), r.Running...)
}
