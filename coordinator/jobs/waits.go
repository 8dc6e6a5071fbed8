package jobs

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/dispatch"
	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/protocol"
)

// Wait is what a job waits for: Reason for programs, Text for people, with the command that helps. The zero value is nothing.
type Wait struct {
	Reason protocol.WaitReason
	Text   string
}

// Facts is what a leader knows about the things that jobs may wait for.
type Facts struct {
	Concurrent int    // jobs that run at once
	Start      string // the command that starts a worker
	Unrecorded string // why nothing can be recorded just now, or empty
	NATS       string // why the workers cannot be reached, or empty
	// Lost, if set, reports whether a blob is missing on the leader and no coordinator that answers has it.
	Lost func(digest string) bool
	// Workers tells which workers could compute tasks of a job; nil while that is not known.
	Workers func(job uint64) dispatch.Availability
}

// PendingLong is how long an entry may be on its way into the log before the leader counts as unable to record anything.
const PendingLong = 3 * time.Second

// foreign reports whether a job has not ended and needs a leader of another arithmetic version. It takes no place on this leader.
func foreign(job *state.Job) bool {
	return job.Job != nil && !job.State.Final() && job.Job.Numerics != round.Numerics
}

// Waits tells what queued and running jobs wait for, by id. all is in the order of submission. It is a pure function.
func Waits(all []*state.Job, f *Facts) map[uint64]Wait {
	waits := make(map[uint64]Wait)
	var run []string // names of the jobs that have their place
	for _, job := range all {
		if job.State == protocol.Running && !foreign(job) {
			run = append(run, job.Name)
		}
	}
	place := 0
	for _, job := range all {
		if job.State != protocol.Running && job.State != protocol.Queued {
			continue
		}
		if job.State == protocol.Queued && !foreign(job) {
			place++
		}
		if w := f.wait(job, place, run); w.Reason != "" {
			waits[job.ID] = w
		}
	}
	return waits
}

// wait tells what one job waits for. place is its place in the queue, from 1; run has the names of the running jobs.
func (f *Facts) wait(job *state.Job, place int, run []string) Wait {
	switch {
	case foreign(job):
		return Wait{protocol.WaitNumerics, fmt.Sprintf("the job needs a leader with arithmetic version %d, this leader has %d: run that version on a coordinator, then: coppice cluster transfer ID",
			job.Job.Numerics, round.Numerics)}
	case f.Unrecorded != "":
		return Wait{protocol.WaitCommit, "the leader cannot record anything: " + f.Unrecorded + "; see: coppice cluster members"}
	case f.NATS != "":
		return Wait{protocol.WaitNATS, "the leader cannot reach the workers: " + f.NATS + "; see: coppice cluster members"}
	case job.State == protocol.Queued && place > max(0, f.Concurrent-len(run)):
		return Wait{protocol.WaitQueue, fmt.Sprintf("place %d in the queue: at most %d jobs run at once (coppice coordinator --jobs), now %s",
			place-max(0, f.Concurrent-len(run)), f.Concurrent, list(run))}
	case f.Workers == nil:
		return Wait{}
	}
	return f.workersFor(job)
}

// workersFor tells whether a job waits for workers, and why the known workers do not help. The reason that is easiest to mend
// comes first. A job with usable workers may be stopped by something else.
func (f *Facts) workersFor(job *state.Job) Wait {
	a := f.Workers(job.ID)
	switch {
	case a.Stops != "":
		if text := lostBlobs(job, f.Lost); text != "" {
			return Wait{protocol.WaitBlobs, text}
		}
		return Wait{protocol.WaitRetry, "the job stopped and will be retried: " + a.Stops + "; see: coppice cluster"}
	case a.Unknown || a.Usable > 0:
		return Wait{}
	case len(a.Unable) > 0:
		return Wait{protocol.WaitMemory, fmt.Sprintf("no worker has enough memory for the job: %s; start a worker with more: %s --memory SIZE", list(a.Unable), f.Start)}
	case len(a.Unreachable) > 0:
		return Wait{protocol.WaitUnreachable, fmt.Sprintf("no worker can be reached: %s; start a worker: %s", list(a.Unreachable), f.Start)}
	case len(a.Quarantined) > 0:
		return Wait{protocol.WaitQuarantined, fmt.Sprintf("every worker is quarantined: %s; start another worker: %s, or see: coppice cluster", list(a.Quarantined), f.Start)}
	case len(a.Refused) > 0:
		return Wait{protocol.WaitRefused, fmt.Sprintf("every worker is refused: %s; start a worker of this version: %s", list(a.Refused), f.Start)}
	}
	return Wait{protocol.WaitNoWorker, protocol.NoWorker(f.Start)}
}

// lostBlobs says which blobs a job needs that are lost, and what helps; empty: none is.
func lostBlobs(job *state.Job, lost func(digest string) bool) string {
	if lost == nil {
		return ""
	}
	var names []string
	data := 0
	if m := job.Manifest; m != nil {
		for i := range m.Shards {
			if d := m.Shards[i].Digest; lost(d) {
				names, data = append(names, fmt.Sprintf("shard %d (%.12s)", i, d)), data+1
			}
		}
	}
	others := [][2]string{{"the job's training state", job.TrainerBlob}}
	if job.Job != nil {
		others = append(others, [2]string{"the job's list of folds", job.Job.Split.Assigned}, [2]string{"the weights to start from", job.Job.Weights})
	}
	for _, o := range others {
		if o[1] != "" && lost(o[1]) {
			names = append(names, fmt.Sprintf("%s (%.12s)", o[0], o[1]))
		}
	}
	if len(names) == 0 {
		return ""
	}
	text := fmt.Sprintf("blobs of the job are on no coordinator that answers: %s; the job continues once a coordinator has them: ", list(names))
	if data == len(names) {
		return text + fmt.Sprintf("import dataset %s again (coppice dataset import), or start a coordinator that has them", job.Dataset)
	}
	return text + fmt.Sprintf("start a coordinator that has them, or cancel the job: coppice job cancel %s", job.Name)
}

// maxListed bounds the names in a text.
const maxListed = 4

// list writes some names.
func list(names []string) string {
	if n := len(names); n > maxListed {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxListed], ", "), n-maxListed)
	}
	return strings.Join(names, ", ")
}

// lasting lists the reasons of a worker that still hold when its job's wait is over.
var lasting = []protocol.IdleReason{protocol.IdleMemory, protocol.IdleStalled, protocol.IdleShards}

// AddIdle says why workers compute nothing. idle is by worker; all and waits are as in Waits.
func AddIdle(workers []protocol.Worker, idle map[string]dispatch.Idle, all []*state.Job, waits map[uint64]Wait) {
	for i := range workers {
		w := &workers[i]
		if why, is := idle[w.ID]; is {
			w.IdleReason, w.Idle = idleFor(why, all, waits)
		}
	}
}

// idleFor says why a worker computes nothing, for programs and for people: what the dispatcher says, what the job that it could
// work for waits for, or why no job runs. It is a pure function.
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
	if wait := waits[w.Job]; wait.Reason != "" && !slices.Contains(lasting, w.Reason) {
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
