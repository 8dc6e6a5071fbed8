package schedule

import (
	"fmt"
	"slices"
	"time"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/digests"
)

// Job schedules the rounds of one job, one after the other. It lives as long as its driver on one leader. Its methods, like
// those of Workers, are called one at a time.
type Job struct {
	id       uint64
	workers  *Workers
	shards   []dataset.ShardRef
	verifies bool // true if the leader can compute tasks

	leases int               // slots that the job has. Invariant: the sum over all workers of their leases of this job
	wants  bool              // true if a task waits that no worker had a slot for
	unable map[string]string // workers that never can compute a task of the job, and why
	late   int               // results, also of earlier rounds, that could not be recorded at the first try and are not yet
	freed  bool              // true if the step has freed a slot

	sent   map[string]*sent
	plans  map[int]*plan // of reduce rounds, by number of tasks
	held   time.Time     // when workers were last told which shards to hold
	pace   pace
	budget *Share // nil: none

	// The round.
	number uint64
	r      *round.Round // nil: none
	began  time.Time
	tasks  []task
	open   int    // tasks that have not ended. Invariant: the number of tasks in a state before Done
	over   bool   // true if the round is complete, has failed or begins again: nothing more is given out
	seen   uint64 // Workers.version that leases are made for
	checks []int  // tasks whose results are compared: of a reduce round all, of a gather round those with a lease
	gather *gather

	// The step.
	now  time.Time
	out  []Action
	list []uint32 // memory of Action.Tasks
}

// Options say how the tasks of a job are scheduled.
type Options struct {
	Shards []dataset.ShardRef // of the job's dataset
	// Verifies is true if the leader can compute tasks.
	Verifies bool
	// Budget, if set, bounds the computing time of tasks of gather rounds.
	Budget *Share
}

// NewJob returns the job of an id, of which there is no other among the workers' jobs. Close ends it.
func (w *Workers) NewJob(id uint64, o Options) *Job {
	if w.jobs[id] != nil {
		panic(fmt.Sprintf("schedule: job %d is there already", id))
	}
	j := &Job{
		id: id, workers: w, shards: o.Shards, verifies: o.Verifies, budget: o.Budget,
		unable: make(map[string]string), sent: make(map[string]*sent), plans: make(map[int]*plan),
	}
	w.jobs[id] = j
	return j
}

// sent is what one worker was sent of the job.
type sent struct {
	to     *Worker
	values []Value
	// results are the digests of the results that the worker said it has. Chunks of values that it has are only named.
	results map[digests.Digest]struct{}
}

// maxResults bounds the results that a worker is believed to have. Others are sent to it.
const maxResults = 1 << 16

// State says where a task of a round is. DESIGN.md has the transitions.
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

// task is where a task is. A round may have a million, and few have an attempt.
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

// Lease is one worker's right to compute a task, and its result once two are compared.
type Lease struct {
	worker   string // empty: there is no lease; Verifier: the leader itself
	on       *Worker
	task     int
	order    uint64 // leases of gather rounds that were given later have more
	since    time.Time
	reminded time.Time
	started  time.Time     // when the worker was seen to have a slot for it; zero: it was not
	limit    time.Duration // of computing from then on
	answered bool
	result   Result // if answered
}

// at returns a task with an attempt.
func (j *Job) at(t int) *task {
	s := &j.tasks[t]
	if s.attempt == nil {
		s.attempt = new(attempt)
	}
	return s
}

// leaseOf returns the lease that a worker has of a task, or nil.
func (s *task) leaseOf(worker string) *Lease {
	for i := range 2 {
		if s.attempt != nil && worker != "" && s.leases[i].worker == worker {
			return &s.leases[i]
		}
	}
	return nil
}

// isOpen reports whether a result of the task is needed from a worker.
func (s *task) isOpen() bool { return s.state == Waiting || s.state == Leased }

// end ends a lease: its slot is free. A task of a reduce round without a lease waits.
func (j *Job) end(l *Lease) {
	j.free(l)
	s := &j.tasks[l.task]
	*l = Lease{}
	if j.gather == nil && s.state == Leased && s.leases[0].worker == "" && s.leases[1].worker == "" {
		s.state = Waiting
	}
}

// free gives back the slot of a lease, if it has one.
func (j *Job) free(l *Lease) {
	if l.on == nil {
		return
	}
	is := func(other *Lease) bool { return other == l }
	l.on.leases = slices.DeleteFunc(l.on.leases, is)
	j.gather.leased = slices.DeleteFunc(j.gather.leased, is)
	l.on = nil
	j.leases--
	j.freed = true
}

// Known is a result that the log has when a round begins. A zero Digest is a task that is not run.
type Known struct {
	Task   uint32
	Digest digests.Digest
	Took   time.Duration
}

// Begin begins a round. known has the results of a gather round that are recorded; audit lists the tasks, ascending, that
// two workers compute.
func (j *Job) Begin(dst []Action, now time.Time, number uint64, r *round.Round, known []Known, audit []int) []Action {
	j.now, j.out = now, dst
	j.number, j.r, j.began, j.seen, j.open, j.over, j.gather = number, r, now, 0, r.Units, false, nil
	if cap(j.tasks) < r.Units {
		j.tasks = make([]task, r.Units)
	}
	j.tasks = j.tasks[:r.Units]
	for t := range j.tasks { // attempts keep their memory: a reduce round needs all of them
		s := &j.tasks[t]
		if s.state, s.check = Waiting, unchecked; s.attempt != nil {
			*s.attempt = attempt{}
		}
	}
	for _, t := range audit {
		j.tasks[t].check = audited
	}
	if r.How == round.Collect {
		j.checks = j.checks[:0]
		j.beginGather(known)
	} else {
		j.checks = append(j.checks[:0], audit...)
		j.beginReduce()
	}
	return j.take()
}

// Step applies an event and appends the actions that follow from it to dst.
func (j *Job) Step(dst []Action, now time.Time, e Event) []Action {
	j.now, j.out, j.list = now, dst, j.list[:0]
	switch {
	case e.Kind == ResultRecorded && e.Late, e.Kind == ResultLost && e.Late:
		j.late--
	case e.Kind == RecordingLate:
		j.late++
	}
	switch {
	case j.r == nil:
		// between two rounds
	case j.r.How == round.Collect:
		j.stepGather(&e)
	default:
		j.stepReduce(&e)
	}
	return j.take()
}

// take returns the actions of the step.
func (j *Job) take() []Action {
	if j.freed {
		j.freed = false
		j.do(Action{Kind: WakeOthers})
	}
	out := j.out
	j.out = nil
	return out
}

// End ends the round, complete or not: its slots are free.
func (j *Job) End(dst []Action, now time.Time) []Action {
	j.now, j.out = now, dst
	if j.gather != nil {
		for len(j.gather.leased) > 0 {
			j.end(j.gather.leased[0])
		}
		j.tasks = j.tasks[:0]
	}
	j.freed = j.freed || j.wants // jobs may have let this one go first
	j.r, j.gather, j.wants = nil, nil, false
	return j.take()
}

// Close ends the job: its workers stop its tasks and forget what they keep.
func (j *Job) Close(dst []Action, now time.Time) []Action {
	j.out = j.End(dst, now)
	for _, name := range j.sentTo() {
		j.do(Action{Kind: SendForget, Worker: name})
	}
	delete(j.workers.jobs, j.id)
	if j.budget != nil {
		j.budget.Close()
	}
	j.freed = true
	return j.take()
}

// sentTo lists the workers that have the job.
func (j *Job) sentTo() (names []string) {
	for name := range j.sent {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Compares reports whether the result of a task is compared with another's.
func (j *Job) Compares(t int) bool { return t < len(j.tasks) && j.tasks[t].check != unchecked }

// Computed returns how long the slowest partial of the last reduce round was computed, as workers say.
func (j *Job) Computed() time.Duration { return j.pace.slowest }

func (j *Job) do(a Action) { j.out = append(j.out, a) }

func (j *Job) count(m Metric, n int) { j.do(Action{Kind: Count, Metric: m, N: n}) }

func (j *Job) drop(reason DropReason) { j.do(Action{Kind: Drop, Drop: reason}) }

func (j *Job) fail(format string, args ...any) {
	j.over = true
	j.do(Action{Kind: Fail, Err: fmt.Errorf(format, args...)})
}

// able lists the workers that may be given tasks of the round.
func (j *Job) able() []*Worker {
	list := j.workers.list(j.gather == nil)
	if len(j.unable) == 0 {
		return list
	}
	var kept []*Worker
	for _, w := range list {
		if j.unable[w.Name] == "" {
			kept = append(kept, w)
		}
	}
	return kept
}

// named reports whether a worker of that name is in the list.
func named(list []*Worker, name string) bool {
	return slices.ContainsFunc(list, func(w *Worker) bool { return w.Name == name })
}

// isThere reports whether the process that a lease was given to can still answer.
func (j *Job) isThere(l *Lease) bool {
	w, s := j.workers.Get(l.worker), j.sent[l.worker]
	return w != nil && s != nil && s.to == w
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
	s := j.sent[name]
	if s == nil {
		s = &sent{to: j.workers.Get(name)}
		j.sent[name] = s
		served := j.workers.served[name]
		if served == nil {
			served = make(map[uint64]bool)
			j.workers.served[name] = served
		}
		served[j.id] = true
		j.do(Action{Kind: SendSetup, Worker: name})
	}
	for i := range j.r.Vars {
		v := &j.r.Vars[i]
		at := slices.IndexFunc(s.values, func(has Value) bool { return has.ID == v.ID })
		switch {
		case at < 0:
			s.values = append(s.values, Value{v.ID, v.Version})
		case s.values[at].Version == v.Version:
			continue
		default:
			s.values[at].Version = v.Version
		}
		if len(v.Pieces) == 0 || s.to == nil || !s.to.Chunks {
			j.do(Action{Kind: SendValue, Worker: name, Var: i})
			continue
		}
		for k, p := range v.Pieces {
			digest, _ := digests.Parse(p.Digest())
			_, known := s.results[digest]
			j.do(Action{Kind: SendChunk, Worker: name, Var: i, Chunk: k, Known: known})
		}
	}
	from := len(j.list)
	j.list = append(j.list, tasks...)
	j.do(Action{Kind: SendRun, Worker: name, Tasks: j.list[from:]})
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
	if s := j.sent[e.Worker]; s == nil || e.Setup {
		delete(j.sent, e.Worker)
	} else {
		s.values = slices.DeleteFunc(s.values, func(has Value) bool {
			return slices.ContainsFunc(e.Values, func(lacks Value) bool { return lacks.ID == has.ID })
		})
		for i := range j.r.Vars { // it has given up some chunk of the value
			v := &j.r.Vars[i]
			if len(v.Pieces) > 0 && slices.Contains(e.Values, Value{v.ID, v.Version}) {
				s.results = nil
			}
		}
	}
	var together []uint32
	for t := range j.leasesOf(e.Worker) {
		if j.tasks[t].check == unchecked {
			together = append(together, uint32(t))
		}
	}
	j.send(e.Worker, together...)
	for t := range j.leasesOf(e.Worker) {
		if j.tasks[t].check != unchecked {
			j.send(e.Worker, uint32(t))
		}
	}
}

// leasesOf yields the open tasks, ascending, that a worker has and has not answered.
func (j *Job) leasesOf(worker string) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		if j.gather != nil {
			for _, l := range j.gather.byTask() {
				if l.worker == worker && !yield(l.task) {
					return
				}
			}
			return
		}
		for t := range j.tasks {
			l := j.tasks[t].leaseOf(worker)
			if l != nil && !l.answered && j.tasks[t].isOpen() && !yield(t) {
				return
			}
		}
	}
}
