// Package schedule decides which worker computes which task of a round, and what happens with the results.
//
// It is a pure state machine: an event goes in, actions come out. It has no clock, no I/O, no goroutine, no lock and no
// randomness, so the same events give the same actions. Package dispatch performs the actions on a cluster.
//
// Workers is the state that all jobs share. A Job is one job's part: its Step applies one event. DESIGN.md has the
// states of a task, and testdata has traces: events, each with the actions that follow from it.
package schedule

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/digests"
)

// Job schedules the rounds of one job, one after the other. It lives as long as the job's driver on one leader. It is
// not safe for concurrent use, and neither are two jobs of the same Workers.
type Job struct {
	*claim
	workers  *Workers
	verifies bool // true if the leader can compute tasks
	// results, also of earlier rounds, that could not be recorded at the first try and are not yet
	late   int
	sent   map[string]sent // by worker
	budget *Share          // nil: none
	reduce *reduce
	gather *gather

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
	now   time.Time
	freed bool // true if a slot is free that was not
}

// kind is what reduce rounds and gather rounds do differently.
type kind interface {
	begin(known []Known)
	step(e Event)
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
	lost    bool // true if it cannot be used, and a WorkerTrouble said so
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

// State is the state of a task. DESIGN.md has the transitions.
type State uint8

const (
	Waiting   State = iota // no lease
	Leased                 // one worker computes it, or two
	Storing                // its result is on the way to the leader's disk
	Recording              // its result is on the leader's disk, and the log is told
	Skipping               // the log is told that it is not run
	Done                   // its result is used, or stored
	Skipped                // it is not run
)

// check says why the results of two computers of a task are compared.
type check uint8

const (
	unchecked check = iota
	audited         // it is in the audit's sample
	doubted         // its first result was not finite
)

// task is a task of a round. A round may have a million, and few have an attempt.
type task struct {
	state State
	check check
	*attempt
}

// attempt is what is kept of a task from its first lease until it ends. nil: it has not begun.
type attempt struct {
	// leases are of different workers. The second is set only if the task is checked, or if the first takes too long.
	leases [2]Lease

	copies    uint8     // how often another worker got it because one took too long
	tries     int       // temporary failures
	failing   time.Time // first of them
	avoid     string    // worker of the last of them
	notBefore time.Time // it gets no lease earlier
	verifying bool      // true if the leader decides between two results
}

// leaseOf returns the lease that a worker has of the task, or nil.
func (s *task) leaseOf(worker string) *Lease {
	for i := range 2 {
		if s.attempt != nil && worker != "" && s.leases[i].worker == worker {
			return &s.leases[i]
		}
	}
	return nil
}

// isFree reports whether the task has no lease.
func (s *task) isFree() bool {
	return s.attempt == nil || s.leases[0].worker == "" && s.leases[1].worker == ""
}

// isOpen reports whether a result of the task is needed from a worker.
func (s *task) isOpen() bool { return s.state == Waiting || s.state == Leased }

// A task that fails for a reason that may pass (a full disk, a shard that is not available) is tried by each worker at
// once, and then after pauses that double.
const (
	firstPause = 50 * time.Millisecond
	// LongestPause is the longest wait of a task that failed.
	LongestPause = 5 * time.Second
)

// pauseAfter returns how long a task waits after its n-th failure if there are so many workers.
func pauseAfter(n, workers int) time.Duration {
	if n < workers {
		return 0
	}
	return min(LongestPause, firstPause<<min(n-workers, 20))
}

// isExhausted reports whether a task has failed for so long that its job fails. Time in which no coordinator has a blob
// that the job needs does not count: the job goes on once one has it again.
func (a *attempt) isExhausted(now time.Time, giveUp time.Duration, blobLost bool) bool {
	if now.Sub(a.failing) <= giveUp {
		return false
	}
	if blobLost {
		a.failing = now
	}
	return !blobLost
}

// NewJob returns the job of an id, which no other of the workers' jobs has, on a dataset of these shards. Close ends
// it.
func (w *Workers) NewJob(id uint64, shards []dataset.ShardRef, o Options) *Job {
	if w.claims[id] != nil {
		panic(fmt.Sprintf("schedule: job %d is there already", id))
	}
	j := &Job{claim: &claim{job: id, unable: make(map[string]string)}, workers: w, verifies: o.Verifies, budget: o.Budget,
		sent: make(map[string]sent)}
	j.reduce = &reduce{Job: j, shards: shards, plans: make(map[int]*plan),
		answered: make(map[answerer][]uint64)}
	j.gather = &gather{Job: j}
	j.kind = j.reduce
	w.claims[id] = j.claim
	return j
}

// Begin begins a round. known has the results of a gather round that are recorded; audit lists the tasks, ascending,
// that two workers compute.
func (j *Job) Begin(dst []Action, now time.Time, number uint64, r *round.Round, known []Known, audit []int) []Action {
	j.start(dst)
	j.now, j.over = now, false
	j.number, j.spec, j.began, j.seen, j.open = number, r, now, 0, r.Tasks
	if cap(j.tasks) < r.Tasks {
		j.tasks = make([]task, r.Tasks)
	}
	j.tasks = j.tasks[:r.Tasks]
	for t := range j.tasks { // attempts keep their memory: a reduce round needs all of them
		s := &j.tasks[t]
		if s.state, s.check = Waiting, unchecked; s.attempt != nil {
			*s.attempt = attempt{}
		}
	}
	j.checks = append(j.checks[:0], audit...)
	for _, t := range audit {
		j.tasks[t].check = audited
	}
	if j.kind = j.reduce; r.Gather() != nil {
		j.kind = j.gather
	}
	j.kind.begin(known)
	return j.take()
}

// Step applies an event and appends the actions that follow from it to dst.
func (j *Job) Step(dst []Action, now time.Time, e Event) []Action {
	j.start(dst)
	j.now = now
	switch e := e.(type) {
	case *ResultRecorded:
		if e.Late {
			j.late--
		}
	case *ResultLost:
		if e.Late {
			j.late--
		}
	case *RecordingLate:
		j.late++
	case *RecordingGivenUp:
		j.late--
	}
	if j.spec != nil {
		j.kind.step(e)
	}
	return j.take()
}

// End ends the round, complete or not: its slots are free.
func (j *Job) End(dst []Action, now time.Time) []Action {
	j.start(dst)
	j.now = now
	j.endRound()
	return j.take()
}

func (j *Job) endRound() {
	if j.spec != nil {
		j.kind.stop()
	}
	j.freed = j.freed || j.wants // jobs may have let this one go first
	j.spec, j.wants = nil, false
}

// Close ends the job: its workers stop its tasks and forget what they keep.
func (j *Job) Close(dst []Action, now time.Time) []Action {
	j.start(dst)
	j.now = now
	j.endRound()
	for _, name := range slices.Sorted(maps.Keys(j.sent)) {
		j.do(&SendForget{Worker: name})
	}
	delete(j.workers.claims, j.job)
	if j.budget != nil {
		j.budget.Close()
	}
	j.freed = true
	return j.take()
}

// take returns the actions of the step.
func (j *Job) take() []Action {
	if j.freed {
		j.freed = false
		j.do(&WakeOthers{})
	}
	list := j.actions
	j.actions = nil
	return list
}

// Compares reports whether the result of a task is compared with another's.
func (j *Job) Compares(t int) bool { return t < len(j.tasks) && j.tasks[t].check != unchecked }

// Computed returns how long the slowest partial of the last reduce round was computed, as workers say.
func (j *Job) Computed() time.Duration { return j.reduce.slowest }

func (o *output) do(a Action) { o.actions = append(o.actions, a) }

func (o *output) count(m Metric, n int) { o.do(&Count{Metric: m, N: n}) }

func (o *output) drop(reason DropReason) { o.do(&Drop{Reason: reason}) }

func (o *output) fail(format string, args ...any) {
	o.over = true
	o.do(&Fail{Err: fmt.Errorf(format, args...)})
}

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
	if l.on == nil {
		return
	}
	is := func(other *Lease) bool { return other == l }
	l.on.leases, j.leased = slices.DeleteFunc(l.on.leases, is), slices.DeleteFunc(j.leased, is)
	l.on.start(j.now)
	l.on, j.freed = nil, true
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

// forgetGone forgets what workers were sent that are gone. A worker that is unreachable may be the same process when it
// is back. forgetGone also tells which workers cannot be used any longer, each time once; lost counts the leases that
// they have lost.
func (j *Job) forgetGone(lost map[string]int) {
	var tell []string
	for name, s := range j.sent {
		is := s.to != nil && j.workers.Get(name) != s.to
		if is && !s.lost && j.workers.Trusts(name) {
			tell = append(tell, name)
		}
		if is != s.lost {
			s.lost = is
			j.sent[name] = s
		}
	}
	slices.Sort(tell)
	for _, name := range tell {
		j.do(&WorkerTrouble{Worker: name, Reason: j.sent[name].to.whyLost(), Tasks: lost[name]})
	}
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
		j.do(&SendSetup{Worker: name})
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
		if len(v.Chunks) == 0 {
			j.do(j.sendValue.put(SendValue{Worker: name, Var: i}))
			continue
		}
		for from := 0; from < len(v.Chunks); { // few actions: there may be very many chunks, and workers
			to, known := from+1, s.knows(v.Chunks[from])
			for to < len(v.Chunks) && s.knows(v.Chunks[to]) == known {
				to++
			}
			j.do(&SendChunks{Worker: name, Var: i, From: from, N: to - from, Known: known})
			from = to
		}
	}
	j.sent[name] = s
	from := len(j.listed)
	j.listed = append(j.listed, tasks...)
	j.do(j.sendRun.put(SendRun{Worker: name, Tasks: j.listed[from:]}))
	for _, t := range tasks {
		if l := j.tasks[t].leaseOf(name); l != nil {
			l.since = j.now
		}
	}
}

// lacks sends a worker what it lacks, and its tasks again. Checked tasks are sent one by one: each is answered alone.
func (j *Job) lacks(e *WorkerLacks) {
	if e.Round != j.number {
		j.drop(Stale)
		return
	}
	s, had := j.sent[e.Worker]
	if !had || e.Setup {
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
	if again := len(together) + len(alone); again > 0 {
		j.count(TasksRetried, again)
		if had && e.Setup {
			j.do(&WorkerTrouble{Worker: e.Worker, Trouble: LacksJob, Tasks: again})
		}
	}
	j.send(e.Worker, together...)
	for _, t := range alone {
		j.send(e.Worker, t)
	}
}

// taskFailed has a task tried again, or compared, or fails the job.
func (j *Job) taskFailed(e *TaskFailed) {
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
	case e.NotFinite && j.kind == kind(j.reduce):
		j.notFinite(e.Task, l, Result{NotFinite: e.Reason})
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
		j.unable[e.Worker] = cmp.Or(strings.TrimPrefix(e.Reason, "worker: "),
			"the worker has too little memory for its tasks")
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
	j.do(&Retried{Task: e.Task, Worker: e.Worker, Pause: pause, Reason: e.Reason, Err: failure})
	j.kind.retry(e.Task)
}
