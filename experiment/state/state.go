// Package state says how far an experiment is. It is pure: the leader, runs with --local and tests give it what they
// know.
package state

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/protocol"
)

// Job is what is known of a job of an experiment.
type Job struct {
	*protocol.JobInfo
	Runs []Runs // by method of the job; needed only if a job is running
}

// order lists states of jobs: the state of an experiment is the first that one of its jobs has.
var order = []protocol.JobState{protocol.Running, protocol.Queued, protocol.Paused, protocol.Failed, protocol.Cancelled,
	protocol.Done}

// Of says how far the experiment of some jobs is; the newest job comes first, and there is one at least. If a later
// submission has a job on the same dataset, only the runs that have ended count of a job that failed or was cancelled,
// and runs that were not run do not count: the later job has the others.
func Of(jobs []Job) *protocol.Experiment {
	x := &protocol.Experiment{Name: jobs[0].Experiment, Ownership: protocol.Ownership{Owner: jobs[0].Owner},
		State: jobs[0].State, Submitted: jobs[0].Submitted, Outline: jobs[0].Outline}
	newest := make(map[string]*protocol.JobInfo) // of the last submission, by dataset
	oldest := make(map[string]int)               // the first job, by contents of a dataset
	for i := range jobs {
		oldest[contents(jobs[i].JobInfo)] = i
	}
	var runs []Runs
	at := make(map[[2]string]int) // in runs, by method and dataset
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
			x.Running += len(r.Running)
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
	if x.State == protocol.Running && x.Waiting == "" && x.Running > 0 {
		e := EstimateOf(runs, x.Running)
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

// Runs is what is known of the runs of one method on one dataset. They take about as long as each other.
type Runs struct {
	Method, Dataset string
	All             int       // how many runs there are
	Ended           int       // how many have a result, or are not run
	Running         []float64 // for each run that is being computed, the seconds since it began
	Timed           int       // runs that ended well, with a known computing time, also in earlier submissions
	Seconds         float64   // the computing time of these
	Size            float64   // samples times features of the dataset; 0 if not known
}

// waiting returns how many runs have not begun.
func (r *Runs) waiting() int { return max(0, r.All-r.Ended-len(r.Running)) }

// Estimate is when an experiment will end.
type Estimate struct {
	Seconds float64 `json:"seconds_left,omitempty"` // until all runs have ended; 0 if not known
	// From says which runs the estimate was made from, or why there is none.
	From string `json:"estimated_from,omitempty"`
}

// Text says when an experiment ends, and how this is known. It is empty if nothing is known.
func (e Estimate) Text() string {
	switch {
	case e.From == "":
		return ""
	case e.Seconds == 0:
		return "  no ETA yet: " + e.From
	}
	return fmt.Sprintf("  ETA %s, %s", units.Duration(e.Seconds), e.From)
}

// EstimateOf estimates when the runs will have ended if slots of them are computed at a time. A run takes as long as
// the mean of its method on its dataset; runs that already take longer count in the mean. If no such run has ended, the
// times of the method on datasets of a similar size count, scaled by their sizes. The time of another method never
// counts: without a time there is no estimate. But runs of a method do not count if all that have ended failed, and the
// estimate says so.
func EstimateOf(all []Runs, slots int) Estimate {
	ended, runs := 0, 0
	most, mostLeft := -1, 0.0 // the runs with most time left
	total, longest := 0.0, 0.0
	unknown := ""
	var failed []string
	byMethod := make(map[string][]*Runs)
	for i := range all {
		byMethod[all[i].Method] = append(byMethod[all[i].Method], &all[i])
	}
	for i := range all {
		r := &all[i]
		ended, runs = ended+r.Ended, runs+r.All
		if r.waiting()+len(r.Running) == 0 {
			continue
		}
		one, ok := runSeconds(byMethod[r.Method], r)
		switch {
		case !ok && r.Ended > 0: // or, in an earlier submission, their times are not known
			failed = append(failed, r.Method+" on "+r.Dataset)
			continue
		case !ok:
			unknown = cmp.Or(unknown, r.Method+" on "+r.Dataset)
			continue
		}
		one = r.meanWith(one)
		left := float64(r.waiting()) * one
		if r.waiting() > 0 {
			longest = max(longest, one)
		}
		for _, since := range r.Running {
			// A run that takes longer than expected is expected to take a while yet.
			rest := max(one-since, lateShare*since)
			left += rest
			longest = max(longest, rest)
		}
		total += left
		if left > mostLeft {
			most, mostLeft = i, left
		}
	}
	switch {
	case unknown != "":
		return Estimate{From: "no run of " + unknown + " has ended yet"}
	case most < 0 && len(failed) > 0:
		return Estimate{From: "no run of " + failed[0] + " has ended well yet"}
	case most < 0:
		return Estimate{}
	}
	from := fmt.Sprintf("from %s of %s runs", units.Count(ended), units.Count(runs))
	of := &all[most]
	if len(byMethod) > 1 {
		ended, runs = 0, 0
		for _, r := range byMethod[of.Method] {
			ended, runs = ended+r.Ended, runs+r.All
		}
		from = fmt.Sprintf("from %s of %s runs of %s, which has most left", units.Count(ended), units.Count(runs), of.Method)
	}
	if of.Timed == 0 {
		from += ", scaled to the size of " + of.Dataset
	}
	if n := len(failed); n == 1 {
		from += "; without " + failed[0] + ", because no run of it has ended well"
	} else if n > 1 {
		from += fmt.Sprintf("; without %s and %s more, because no run of them has ended well", failed[0], units.Count(n-1))
	}
	return Estimate{max(longest, total/float64(max(1, slots))), from}
}

// meanWith returns the mean time of a run, with the times so far of the runs that already take longer than mean.
func (r *Runs) meanWith(mean float64) float64 {
	n := max(1, r.Timed)
	sum := float64(mean * float64(n))
	for _, since := range r.Running {
		if since > mean {
			n, sum = n+1, sum+since
		}
	}
	return sum / float64(n)
}

// lateShare is how long a run that is late takes yet, as a share of its time so far.
const lateShare = 0.1

const (
	// The exponents with which the time of a method may grow with the size of a dataset.
	leastGrowth = 0.5
	mostGrowth  = 2
	// maxScale is how far a size may be from the sizes of datasets with known times.
	maxScale = 4
)

// runSeconds returns how long a run takes, and whether that is known; same are the runs of its method.
func runSeconds(same []*Runs, r *Runs) (seconds float64, ok bool) {
	if r.Timed > 0 {
		return r.Seconds / float64(r.Timed), true
	}
	if r.Size <= 0 {
		return 0, false
	}
	// The logarithms of size and time on other datasets lie about a line.
	own := math.Log(r.Size)
	low, high := math.Inf(1), math.Inf(-1)
	var n, x, y, xx, xy float64
	for _, o := range same {
		if o.Timed == 0 || o.Seconds <= 0 || o.Size <= 0 {
			continue
		}
		size, took := math.Log(o.Size), math.Log(o.Seconds/float64(o.Timed))
		low, high = min(low, size), max(high, size)
		n, x, y, xx, xy = n+1, x+size, y+took, xx+float64(size*size), xy+float64(size*took)
	}
	if !(own > low-math.Log(maxScale) && own < high+math.Log(maxScale)) {
		return 0, false
	}
	growth := 1.0
	if spread := xx - float64(x*x)/n; spread > 1e-9 {
		growth = min(mostGrowth, max(leastGrowth, (xy-float64(x*y)/n)/spread))
	}
	return math.Exp(y/n + float64(growth*(own-x/n))), true
}
