package jobs

import (
	"fmt"
	"slices"

	"github.com/coppice-ldl/coppice/coordinator/dispatch"
	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/protocol"
)

// mend lists the reasons of a worker that stay whatever its job waits for: they hold once the wait is over.
var mend = []protocol.IdleReason{protocol.IdleMemory, protocol.IdleStalled, protocol.IdleShards}

// AddIdle says of the workers that compute nothing why. idle is by worker; all and waits are as in Waits.
func AddIdle(workers []protocol.Worker, idle map[string]dispatch.Idle, all []*state.Job, waits map[uint64]Wait) {
	for i := range workers {
		w := &workers[i]
		if why, is := idle[w.ID]; is {
			w.IdleReason, w.Idle = idleFor(why, all, waits)
		}
	}
}

// idleFor says why a worker computes nothing, for programs and for people: what the dispatcher says of it, what the job
// waits for that it could work for, or why no job runs. It is a pure function.
func idleFor(w dispatch.Idle, all []*state.Job, waits map[uint64]Wait) (protocol.IdleReason, string) {
	if w.Reason != "" && w.Job == 0 {
		return w.Reason, w.Text
	}
	if w.Job == 0 {
		return noneRuns(all, waits)
	}
	name := fmt.Sprintf("job %d", w.Job)
	for _, j := range all {
		if j.ID == w.Job {
			name = "job " + j.Name
		}
	}
	if wait := waits[w.Job]; wait.Reason != "" && !slices.Contains(mend, w.Reason) {
		return protocol.IdleJobWaits, name + " is waiting: " + wait.Text
	}
	return w.Reason, name + ": " + w.Text
}

// noneRuns says why no job has tasks. The first job that has not ended and is not paused tells.
func noneRuns(all []*state.Job, waits map[uint64]Wait) (protocol.IdleReason, string) {
	var paused []string
	for _, j := range all {
		switch {
		case j.State == protocol.Paused:
			paused = append(paused, j.Name)
		case j.State.Final():
		case waits[j.ID].Reason != "":
			return protocol.IdleJobWaits, fmt.Sprintf("job %s is waiting: %s", j.Name, waits[j.ID].Text)
		default:
			return protocol.IdleNextRound, fmt.Sprintf("job %s is about to start or to end", j.Name)
		}
	}
	if len(paused) > 0 {
		return protocol.IdlePaused, fmt.Sprintf("no job is running; paused jobs: %s; to resume a job: coppice job resume NAME", list(paused))
	}
	return protocol.IdleNoJob, "no job is running"
}
