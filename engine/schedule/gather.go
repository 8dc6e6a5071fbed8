package schedule

import (
	"cmp"
	"slices"
	"time"

	"github.com/coppice-ldl/coppice/internal/digests"
)

// slowGather is how many times the usual time a task may take before an idle worker gets it as well.
const slowGather = 3

// gather is the state of a gather round.
type gather struct {
	queue   *queue
	leased  []*Lease // without results, in the order in which they were given
	lengths *lengths

	announced int           // results
	computed  time.Duration // of announced
}

// byTask lists the leases without results by task.
func (g *gather) byTask() []*Lease {
	list := slices.Clone(g.leased)
	slices.SortFunc(list, func(a, b *Lease) int {
		return cmp.Or(cmp.Compare(a.task, b.task), cmp.Compare(a.order, b.order))
	})
	return list
}

func (j *Job) beginGather(known []Known) {
	j.gather = &gather{lengths: newLengths(j.r.Groups)}
	ended := func(t int, k Known) {
		s := &j.tasks[t]
		s.state, s.attempt = Done, nil
		if k.Digest == (digests.Digest{}) && (j.r.Has == nil || !j.r.Has[t]) {
			s.state = Skipped
		}
		j.open--
		j.do(Action{Kind: Ended, Task: t, Known: true, Skipped: s.state == Skipped, Result: Result{Digest: k.Digest, Took: k.Took}})
	}
	for _, k := range known {
		if t := int(k.Task); t < len(j.tasks) && j.tasks[t].state == Waiting {
			ended(t, k)
		}
	}
	for t := range j.r.Has {
		if j.r.Has[t] && j.tasks[t].state == Waiting {
			ended(t, Known{})
		}
	}
	j.gather.queue = newQueue(len(j.tasks), j.r.Groups, func(t int) bool { return j.tasks[t].state == Waiting })
	if j.budget != nil {
		j.budget.begin(j.r.Groups, j.gather.queue.waiting, known)
	}
	j.finishOrFeed()
}

func (j *Job) stepGather(e *Event) {
	switch e.Kind {
	case Tick:
		j.remind()
		j.estimate()
		j.endBudgets()
		j.speculate()
	case ResultAnnounced:
		j.announced(e)
	case ResultStored:
		j.stored(e)
	case ResultRecorded:
		if e.Round == j.number && j.tasks[e.Task].state == Recording {
			j.doneGather(e.Task, e.Result)
		}
	case ResultLost:
		j.lost(e)
	case SkipsRecorded:
		if e.Round != j.number {
			break
		}
		for _, t := range e.Tasks {
			if s := &j.tasks[t]; s.state == Skipping {
				s.state, s.attempt = Skipped, nil
				j.open--
				j.do(Action{Kind: Ended, Task: int(t), Skipped: true})
			}
		}
	case TaskFailed:
		j.taskFailed(e)
	case WorkerLacks:
		j.lacks(e)
	case LeaderComputed:
		j.leaderComputed(e)
	case CheckpointArrived, ProgressArrived:
		j.subJob(e)
	case PartialArrived:
		j.drop(Stale)
	}
	j.finishOrFeed()
}

func (j *Job) finishOrFeed() {
	switch {
	case j.over:
	case j.open > 0:
		j.feed()
	case j.late == 0:
		j.over = true
		j.do(Action{Kind: Finish})
	}
}

// subJob takes in how far a sub-job is. A checkpoint of a checked task is not used: its two leases begin alike.
func (j *Job) subJob(e *Event) {
	s := &j.tasks[e.Task]
	switch {
	case e.Round != j.number || !j.workers.Trusts(e.Worker):
		j.drop(Stale)
	case e.Kind == ProgressArrived:
		if s.state == Leased && s.leaseOf(e.Worker) != nil {
			j.do(Action{Kind: UseProgress, Task: e.Task, Worker: e.Worker})
		}
	case s.state != Leased || s.check != unchecked:
		j.drop(Stale)
	default:
		j.do(Action{Kind: UseCheckpoint, Task: e.Task, Worker: e.Worker})
	}
}

// announced takes in that a worker has a result, which may be of a lease that it lost meanwhile.
func (j *Job) announced(e *Event) {
	j.workers.answered(e.Worker, j.now)
	s := &j.tasks[e.Task]
	to := j.sent[e.Worker]
	if e.Round == j.number && !j.r.Apart && to != nil && len(to.results) < maxResults { // values are made of results
		if to.results == nil {
			to.results = make(map[digests.Digest]struct{})
		}
		to.results[e.Result.Digest] = struct{}{}
	}
	if e.Round != j.number || !j.workers.Trusts(e.Worker) || !s.isOpen() {
		j.count(TasksWasted, 1)
		return
	}
	j.do(Action{Kind: Computed, Worker: e.Worker, N: 1, Took: e.Result.Took})
	j.gather.announced++
	j.gather.computed += e.Result.Took
	if s.check == unchecked {
		j.store(e.Task, e.Worker, e.Result)
	} else {
		j.answer(e.Task, e.Worker, e.Result)
	}
}

// store has a result brought to the leader's disk. Another worker that computes the task stops.
func (j *Job) store(t int, worker string, r Result) {
	s := j.at(t)
	j.gather.queue.remove(t)
	s.state = Storing
	j.uncheck(t)
	for i := range s.leases {
		l := &s.leases[i]
		if l.on != nil && l.worker != worker {
			j.do(Action{Kind: SendStop, Worker: l.worker, Task: t})
		}
		j.end(l)
	}
	j.do(Action{Kind: Store, Worker: worker, Task: t, Result: r})
}

// stored has a result recorded. The round waits for that if it takes long to compute it again.
func (j *Job) stored(e *Event) {
	if e.Round != j.number || j.tasks[e.Task].state != Storing {
		return
	}
	short := e.Result.Took > 0 && e.Result.Took < j.workers.limits.Short
	j.do(Action{Kind: Record, Task: e.Task, Result: e.Result, Async: short})
	if j.tasks[e.Task].state = Recording; short {
		j.doneGather(e.Task, e.Result)
	}
}

func (j *Job) doneGather(t int, r Result) {
	s := &j.tasks[t]
	s.state, s.attempt = Done, nil
	j.open--
	j.gather.lengths.end(t, r.Took)
	if j.budget != nil {
		j.budget.end(t, r.Took)
	}
	j.do(Action{Kind: Ended, Task: t, Result: r})
}

// lost has a task computed again whose result could not be stored, or is stored no longer.
func (j *Job) lost(e *Event) {
	if e.Round != j.number {
		return
	}
	switch j.tasks[e.Task].state {
	case Storing, Recording:
	case Done:
		j.open++
	default:
		return
	}
	j.do(Action{Kind: Retried, Task: e.Task, Err: e.Err})
	j.count(TasksRetried, 1)
	j.at(e.Task).verifying = false
	j.wait(e.Task, true)
}

// wait queues a task for a lease. again is true if it had begun.
func (j *Job) wait(t int, again bool) {
	if again && j.budget != nil {
		j.budget.again(t)
	}
	s := j.at(t)
	s.state = Waiting
	j.uncheck(t)
	j.gather.queue.add(t, s.avoid, s.notBefore, j.now)
}

// requeue queues a task that nobody computes any longer.
func (j *Job) requeue(t int) {
	if s := &j.tasks[t]; s.state == Leased && s.leases[0].worker == "" && s.leases[1].worker == "" {
		j.wait(t, true)
	}
}

func (j *Job) uncheck(t int) {
	if j.tasks[t].check != unchecked {
		j.checks = slices.DeleteFunc(j.checks, func(other int) bool { return other == t })
	}
}

// feed gives waiting tasks to workers with free slots, and second leases to checked tasks.
func (j *Job) feed() {
	if j.seen != j.workers.version {
		j.seen = j.workers.version
		for _, l := range j.gather.byTask() {
			if t := l.task; !j.isThere(l) {
				j.count(TasksRetried, 1)
				j.end(l)
				j.requeue(t)
			}
		}
		j.forgetGone()
	}
	g, wanted := j.gather, j.wants
	var closed map[string]bool // workers that tasks avoid and must, since no other has a slot
	for {
		var may []bool // by group
		if j.budget != nil {
			may = j.budget.may(j.now)
		}
		waiting := g.queue.count(j.now, may)
		t, avoid, ok := g.queue.first(may, closed, g.lengths)
		if !ok {
			j.wants = j.wants && waiting > 0
			break
		}
		on, next := j.workers.lease(j, avoid, waiting)
		if on == nil {
			if next != nil {
				j.do(Action{Kind: WakeJob, Job: next.id})
			}
			if avoid == "" {
				break
			}
			if closed == nil {
				closed = make(map[string]bool)
			}
			closed[avoid] = true
			continue
		}
		g.queue.remove(t)
		if j.budget != nil {
			j.budget.start(t)
		}
		if s := j.at(t); s.check != unchecked {
			j.checks = append(j.checks, t)
			slices.Sort(j.checks)
		}
		j.tasks[t].state = Leased
		j.leaseSlot(t, 0, on)
	}
	j.freed = j.freed || wanted && !j.wants // other jobs let this one go first
	for _, t := range slices.Clone(j.checks) {
		s := &j.tasks[t]
		if j.over || s.state != Leased || s.verifying || j.now.Before(s.notBefore) {
			continue
		}
		if s.leases[0].answered && s.leases[1].answered { // the leader could not decide
			j.settle(t)
			continue
		}
		for i := range s.leases {
			l, other := &s.leases[i], &s.leases[1-i]
			if l.worker != "" || other.worker == "" {
				continue
			}
			if other.worker != Verifier && len(j.able()) < 2 && j.verifies {
				*l = Lease{worker: Verifier, task: t}
				j.do(Action{Kind: Compute, Task: t})
			} else if on, _ := j.workers.lease(j, other.worker, 0); on != nil && on.Name != other.worker {
				j.leaseSlot(t, i, on)
			}
		}
	}
}

// leaseSlot gives a task to a worker that has a slot for it.
func (j *Job) leaseSlot(t, i int, on *Worker) {
	j.workers.orders++
	l := &j.at(t).leases[i]
	*l = Lease{worker: on.Name, on: on, task: t, order: j.workers.orders, reminded: j.now}
	on.leases = append(on.leases, l)
	j.gather.leased = append(j.gather.leased, l)
	j.leases++
	j.send(on.Name, uint32(t))
}

// isBehind reports whether a lease waits for a slot: its worker has as many earlier ones as slots.
func (l *Lease) isBehind() bool { return slices.Index(l.on.leases, l) >= l.on.Slots }

// remind sends workers the tasks again that they have had for a while. A worker that computes the task ignores it. A worker
// that was restarted, or lost the message, learns of it.
func (j *Job) remind() {
	for _, l := range j.gather.byTask() {
		if j.now.Sub(l.reminded) >= j.workers.limits.Remind {
			l.reminded = j.now
			since := l.since
			j.send(l.worker, uint32(l.task))
			l.since = since
		}
	}
}

// speculate gives a task that takes long, or waits for a slot, to an idle worker as well, if no task waits. The first result
// is used.
func (j *Job) speculate() {
	g := j.gather
	if j.over || g.queue.count(j.now, nil) > 0 {
		return
	}
	for _, l := range g.byTask() {
		s := &j.tasks[l.task]
		if l != &s.leases[0] || s.check != unchecked || s.leases[1].worker != "" {
			continue
		}
		if !l.isBehind() {
			if g.announced == 0 {
				continue
			}
			usual := g.computed / time.Duration(g.announced)
			if j.now.Sub(l.since) <= max(j.workers.limits.Slow, slowGather*usual) {
				continue
			}
		}
		on, _ := j.workers.lease(j, l.worker, 0)
		if on == nil || on.Name == l.worker { // no slot is free, or there is no other worker
			return
		}
		j.count(TasksRetried, 1)
		j.leaseSlot(l.task, 1, on)
	}
}

// endBudgets skips the tasks that will not begin any more because their budget is spent, and stops those that have used all
// that was left of it.
func (j *Job) endBudgets() {
	if j.budget == nil || j.over {
		return
	}
	g := j.gather
	for group, over := range j.budget.over(j.now) {
		if !over || g.queue.waiting[group] == 0 {
			continue
		}
		tasks := g.queue.removeGroup(int32(group))
		for _, t := range tasks {
			j.tasks[t].state = Skipping
		}
		j.budget.skip(group, len(tasks))
		j.do(Action{Kind: RecordSkips, Tasks: tasks})
	}
	for _, l := range g.byTask() {
		switch t, took := l.task, j.now.Sub(l.started); {
		case l.on == nil: // it ended with the other lease of its task
		case l.started.IsZero():
			if !l.isBehind() {
				l.started, l.limit = j.now, j.budget.started(t, j.now)
			}
		case took > l.limit:
			s := &j.tasks[t]
			for i := range s.leases {
				if s.leases[i].on != nil {
					j.do(Action{Kind: SendStop, Worker: s.leases[i].worker, Task: t})
				}
				j.end(&s.leases[i])
			}
			j.uncheck(t)
			s.state = Skipping
			j.budget.end(t, took)
			j.do(Action{Kind: RecordSkips, Tasks: []uint32{uint32(t)}, Took: took})
		}
	}
}
