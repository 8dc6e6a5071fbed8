package jobs

import (
	"fmt"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/dispatch"
	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/protocol"
)

// Wait is for what a job waits: Reason for programs, Text for people, with the command
// that helps. The zero value waits for nothing.
type Wait struct {
	Reason protocol.WaitReason
	Text   string
}

// Facts is what a leader knows of what jobs may wait for.
type Facts struct {
	Concurrent int    // jobs that run at once
	Join       string // HTTP addresses of the coordinators, separated by commas
	Unrecorded string // why nothing can be recorded just now, or empty
	NATS       string // why the workers cannot be reached, or empty
	// Lost, if set, reports whether a blob is missing on the leader and no coordinator that answers has it.
	Lost func(digest string) bool
	// Workers tells which workers could compute units of a job; nil while that is not
	// known.
	Workers func(job uint64) dispatch.Availability
}

// PendingLong is how long an entry may be on its way into the log before it is said that
// nothing can be recorded.
const PendingLong = 3 * time.Second

// foreign reports whether a job has not ended and another version computes its numerics: it
// takes no place on this leader.
func foreign(job *state.Job) bool {
	return job.Job != nil && !job.State.Final() && job.Job.Numerics != round.Numerics
}

// Waits tells for what each job waits that is queued or running and that does, by id.
// all is in the order of submission. It is a pure function.
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

// wait tells for what one job waits, which has a place among those that are queued, from 1.
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

// workersFor tells whether a job waits for workers, and why those that there are do not
// help: the first of what can be done about with the least effort. One that they work for
// may be stopped by something else.
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
		return Wait{protocol.WaitMemory, fmt.Sprintf("no worker has enough memory for the job: %s; start a worker with more: %s --memory SIZE", list(a.Unable), f.start())}
	case len(a.Unreachable) > 0:
		return Wait{protocol.WaitUnreachable, fmt.Sprintf("no worker can be reached: %s; start a worker: %s", list(a.Unreachable), f.start())}
	case len(a.Distrusted) > 0:
		return Wait{protocol.WaitDistrusted, fmt.Sprintf("every worker is quarantined: %s; start another worker: %s, or see: coppice cluster", list(a.Distrusted), f.start())}
	case len(a.Refused) > 0:
		return Wait{protocol.WaitRefused, fmt.Sprintf("every worker is refused: %s; start a worker of this version: %s", list(a.Refused), f.start())}
	}
	return Wait{protocol.WaitNoWorker, protocol.NoWorker(f.Join)}
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

// start is the command that starts a worker.
func (f *Facts) start() string { return protocol.StartWorker(f.Join) }

// maxListed bounds the names in a text.
const maxListed = 4

// list writes some names.
func list(names []string) string {
	if n := len(names); n > maxListed {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxListed], ", "), n-maxListed)
	}
	return strings.Join(names, ", ")
}
