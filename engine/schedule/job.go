package schedule

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/digests"
)

// Job schedules the rounds of one job, one after the other. It lives as long as the job's driver on one leader. It is not safe
// for concurrent use, and neither are two jobs of the same Workers.
type Job struct {
	*claim
	workers  *Workers
	verifies bool            // true if the leader can compute tasks
	late     int             // results, also of earlier rounds, that could not be recorded at the first try and are not yet
	sent     map[string]sent // by worker
	budget   *Share          // nil: none
	reduce   *reduce
	gather   *gather

	// The round.
	number uint64
	spec   *round.Round // nil: none
	kind   kind         // reduce or gather
	began  time.Time
	tasks  []task
	open   int    // Invariant: the number of tasks in a state before Done
	seen   uint64 // Workers.version that leases are made for
	checks []int  // checked tasks: of a reduce round all, of a gather round those with a lease

	// The step.
	output
	now    time.Time
	freed  bool     // true if a slot is free that was not
	listed []uint32 // memory of Action.Tasks
}

// kind is what reduce rounds and gather rounds do differently.
type kind interface {
	begin(known []Known)
	step(e *Event)
	// retry has a task tried again, which has lost a lease.
	retry(t int)
	// use takes the right result of a checked task, that worker has. quarantined is true if another worker's was wrong.
	use(t int, worker string, right Result, quarantined bool)
	// eachLease yields the leases of open tasks that have no result, by task.
	eachLease(yield func(*Lease) bool)
	stop()
}

// Options say how the tasks of a job are scheduled.
type Options struct {
	// Verifies is true if the leader can compute tasks.
	Verifies bool
	// Budget, if set, bounds the computing time of tasks of gather rounds.
	Budget *Share
}

// sent is what one worker was sent of the job.
type sent struct {
	to     *Worker
	values []Value
	// results are the digests of the results that the worker said it has. Chunks of values that it has are only named.
	results map[digests.Digest]struct{}
}

// knows reports whether the worker has a chunk, because it computed it.
func (s *sent) knows(c round.Chunk) bool {
	if len(s.results) == 0 {
		return false
	}
	digest, _ := digests.Parse(c.Digest())
	_, has := s.results[digest]
	return has
}

// maxResults bounds the results that a worker is believed to have. Others are sent to it.
const maxResults = 1 << 16

// at returns a task with an attempt.
func (j *Job) at(t int) *task {
	s := &j.tasks[t]
	if s.attempt == nil {
		s.attempt = new(attempt)
	}
	return s
}

// end ends a lease: its slot is free.
func (j *Job) end(l *Lease) {
	j.free(l)
	*l = Lease{}
}

// free gives back the slot of a lease, if it has one.
func (j *Job) free(l *Lease) {
	if j.workers.free(j.claim, l) {
		j.freed = true
	}
}

// able lists the workers that may be given tasks of the round.
func (j *Job) able() []*Worker {
	list := j.workers.list(j.kind != kind(j.gather))
	if len(j.unable) == 0 {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), func(w *Worker) bool { return j.unable[w.Name] != "" })
}

// named reports whether a worker of that name is in the list.
func named(list []*Worker, name string) bool {
	return slices.ContainsFunc(list, func(w *Worker) bool { return w.Name == name })
}

// isThere reports whether the process that a lease was given to can still answer.
func (j *Job) isThere(l *Lease) bool {
	w := j.workers.Get(l.worker)
	return w != nil && j.sent[l.worker].to == w
}

// forgetGone forgets what workers were sent that are gone. A worker that is unreachable may be the same process when it is back.
func (j *Job) forgetGone() {
	for name, s := range j.sent {
		if j.workers.byName[name] != s.to {
			delete(j.sent, name)
			delete(j.unable, name) // it may have more memory when it is back
		}
	}
}

// send gives tasks to a worker, after the job and the values of the round that it lacks.
func (j *Job) send(name string, tasks ...uint32) {
	if len(tasks) == 0 {
		return
	}
	s, has := j.sent[name]
	if !has {
		s.to = j.workers.Get(name)
		served := j.workers.served[name]
		if served == nil {
			served = make(map[uint64]bool)
			j.workers.served[name] = served
		}
		served[j.job] = true
		j.do(Action{Kind: SendSetup, Worker: name})
	}
	for i := range j.spec.Vars {
		v := &j.spec.Vars[i]
		at := slices.IndexFunc(s.values, func(has Value) bool { return has.ID == v.ID })
		switch {
		case at < 0:
			s.values = append(s.values, Value{v.ID, v.Version})
		case s.values[at].Version == v.Version:
			continue
		default:
			s.values[at].Version = v.Version
		}
		if len(v.Chunks) == 0 || s.to == nil || !s.to.Chunks {
			j.do(Action{Kind: SendValue, Worker: name, Var: i})
			continue
		}
		for from := 0; from < len(v.Chunks); { // few actions: there may be very many chunks, and workers
			to, known := from+1, s.knows(v.Chunks[from])
			for to < len(v.Chunks) && s.knows(v.Chunks[to]) == known {
				to++
			}
			j.do(Action{Kind: SendChunks, Worker: name, Var: i, Chunk: from, N: to - from, Known: known})
			from = to
		}
	}
	j.sent[name] = s
	from := len(j.listed)
	j.listed = append(j.listed, tasks...)
	j.do(Action{Kind: SendRun, Worker: name, Tasks: j.listed[from:]})
	for _, t := range tasks {
		if l := j.tasks[t].leaseOf(name); l != nil {
			l.since = j.now
		}
	}
}

// lacks sends a worker what it lacks, and its tasks again. Checked tasks are sent one by one: each is answered alone.
func (j *Job) lacks(e *Event) {
	if e.Round != j.number {
		j.drop(Stale)
		return
	}
	if s, has := j.sent[e.Worker]; !has || e.Setup {
		delete(j.sent, e.Worker)
	} else {
		s.values = slices.DeleteFunc(s.values, func(has Value) bool {
			return slices.ContainsFunc(e.Values, func(lacks Value) bool { return lacks.ID == has.ID })
		})
		for i := range j.spec.Vars { // it has given up some chunk of the value
			v := &j.spec.Vars[i]
			if len(v.Chunks) > 0 && slices.Contains(e.Values, Value{v.ID, v.Version}) {
				s.results = nil
			}
		}
		j.sent[e.Worker] = s
	}
	var together, alone []uint32
	for l := range j.kind.eachLease {
		switch {
		case l.worker != e.Worker:
		case j.tasks[l.task].check == unchecked:
			together = append(together, uint32(l.task))
		default:
			alone = append(alone, uint32(l.task))
		}
	}
	j.send(e.Worker, together...)
	for _, t := range alone {
		j.send(e.Worker, t)
	}
}

// taskFailed has a task tried again, or compared, or fails the job.
func (j *Job) taskFailed(e *Event) {
	if e.Round != j.number || e.Task >= len(j.tasks) || !j.workers.Trusts(e.Worker) {
		j.drop(Stale)
		return
	}
	s := &j.tasks[e.Task]
	l := s.leaseOf(e.Worker)
	failure := fmt.Errorf("task %d on worker %s: %s", e.Task, e.Worker, e.Reason)
	switch {
	case !s.isOpen() || l == nil || l.answered: // another has it by now
		j.drop(Stale)
		return
	case e.Permanent:
		j.fail("%w", failure)
		return
	case e.Result.NotFinite != "" && j.kind == kind(j.reduce):
		j.notFinite(e.Task, l, e.Result)
		return
	}
	j.end(l)
	s.tries++
	s.avoid = e.Worker
	if s.failing.IsZero() {
		s.failing = j.now
	}
	if e.Unable {
		j.workers.version++ // plans are made again without the worker
		j.unable[e.Worker] = cmp.Or(strings.TrimPrefix(e.Reason, "worker: "), "the worker has too little memory for its tasks")
		anyone := false
		for name, w := range j.workers.byName {
			anyone = anyone || w.refused == "" && j.unable[name] == ""
		}
		if !anyone {
			j.fail("no worker can compute the task: %w", failure)
			return
		}
	}
	if s.isExhausted(j.now, j.workers.limits.GiveUp, e.BlobLost) {
		j.fail("no worker could compute the task for %v: %w", j.now.Sub(s.failing).Round(time.Second), failure)
		return
	}
	pause := pauseAfter(s.tries, len(j.able()))
	s.notBefore = j.now.Add(pause)
	j.do(Action{Kind: Retried, Task: e.Task, Worker: e.Worker, Pause: pause, Reason: e.Reason, Err: failure})
	j.kind.retry(e.Task)
}
