package schedule

import (
	"maps"
	"slices"
	"time"
)

// WorkerView describes a worker for people.
type WorkerView struct {
	Name        string
	Slots       int
	Shards      int
	Leases      int    // tasks of gather rounds
	Refused     string // why it is not used; empty: it is
	Quarantined bool
	Unreachable bool
	Heard       time.Time
	SlowFor     time.Duration // it gets no tasks of reduce rounds for so long; 0: it is not slow
}

// View describes the workers, by name.
func (w *Workers) View(now time.Time) []WorkerView {
	list := make([]WorkerView, 0, len(w.byName))
	for _, name := range slices.Sorted(maps.Keys(w.byName)) {
		at := w.byName[name]
		_, quarantined := w.quarantined[name]
		list = append(list, WorkerView{
			Name: name, Slots: at.Slots, Shards: len(at.shards), Leases: len(at.leases), Refused: at.refused, Quarantined: quarantined,
			Unreachable: at.unreachable, Heard: at.heard, SlowFor: max(0, at.slowUntil.Sub(now)),
		})
	}
	return list
}

// Count counts the usable workers, the refused workers, and the shards on the disks of usable workers.
func (w *Workers) Count() (usable, refused, shards int) {
	for _, at := range w.byName {
		switch {
		case at.refused != "":
			refused++
		case !at.unreachable:
			usable++
			shards += len(at.shards)
		}
	}
	return usable, refused, shards
}

// Has reports whether a worker is known, usable or not.
func (w *Workers) Has(name string) bool { return w.byName[name] != nil }

// Refused says why a worker is not used; empty: it is, or is not known.
func (w *Workers) Refused(name string) string {
	if at := w.byName[name]; at != nil {
		return at.refused
	}
	return ""
}

// RunningTask is a task that a worker computes.
type RunningTask struct {
	Task  int
	Since time.Time // when its worker got a slot for it
}

// JobView describes the round of a job for people.
type JobView struct {
	Job    uint64
	Unable map[string]string // workers that never can compute a task of the job, and why
	// Tasks is 0 if no round is under way, or if no worker can compute it.
	Tasks  int
	Gather bool

	// Of a reduce round: by task, the worker that has it and the worker that should hold its shards; and all workers that could
	// have tasks.
	Owner, Target, Able []string

	// Of a gather round: tasks without a result; tasks that may be given out, that rest after a failure, that a budget holds
	// back; and tasks that workers compute now.
	Left, Ready, Resting, Held int
	Running                    []RunningTask
	// Waits counts, by group, the tasks that have no lease and that no budget holds back.
	Waits []int
}

// View describes the round under way.
func (j *Job) View(now time.Time) JobView {
	v := JobView{Job: j.job, Unable: maps.Clone(j.unable)}
	if j.kind != kind(j.gather) { // also between two reduce rounds
		if p := j.reduce.plans[len(j.tasks)]; p != nil && len(j.able()) > 0 {
			v.Tasks, v.Owner, v.Target, v.Able = len(j.tasks), p.owner, p.target, p.able
		}
		return v
	}
	if j.spec == nil {
		return v
	}
	v.Tasks = len(j.tasks)
	q := j.gather.queue
	v.Gather, v.Left, v.Resting = true, j.open, len(q.rests)
	var may []bool
	if j.budget != nil {
		may = j.budget.may(now)
	}
	v.Waits = slices.Clone(q.waiting)
	for g, n := range q.readied {
		if may == nil || may[g] {
			v.Ready += n
		} else {
			v.Held += n
			v.Waits[g] = 0
		}
	}
	for _, l := range j.gather.leased {
		if !l.started.IsZero() {
			v.Running = append(v.Running, RunningTask{l.task, l.started})
		}
	}
	return v
}
