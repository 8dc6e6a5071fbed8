package schedule

import (
	"cmp"
	"slices"
	"time"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/digests"
)

// slowGather is how many times the usual time a task may take before an idle worker gets it as well.
const slowGather = 3

// gather is the part of a Job that schedules gather rounds.
type gather struct {
	*Job
	how     *round.Gather // of the round
	queue   *queue
	lengths *lengths

	announced int           // results
	took      time.Duration // of computing what was announced
}

// byTask lists the leases with slots by task. None has a result.
func (g *gather) byTask() []*Lease {
	list := slices.Clone(g.leased)
	slices.SortFunc(list, func(a, b *Lease) int {
		return cmp.Or(cmp.Compare(a.task, b.task), cmp.Compare(a.order, b.order))
	})
	return list
}

func (g *gather) eachLease(yield func(*Lease) bool) { slices.Values(g.byTask())(yield) }

func (g *gather) begin(known []Known) {
	g.how = g.spec.Gather()
	g.checks = g.checks[:0] // until they have a lease
	g.lengths, g.announced, g.took = newLengths(g.how.Groups), 0, 0
	var done, skipped []uint32 // few actions: there may be very many tasks
	ended := func(t int, k Known) {
		s := &g.tasks[t]
		s.state, s.attempt = Done, nil
		if g.open--; k.Digest == (digests.Digest{}) && !g.how.Skips(t) {
			s.state = Skipped
			skipped = append(skipped, uint32(t))
		} else {
			done = append(done, uint32(t))
			g.lengths.end(t, k.Took)
		}
	}
	for _, k := range known {
		if t := int(k.Task); t < len(g.tasks) && g.tasks[t].state == Waiting {
			ended(t, k)
		}
	}
	for t := range g.how.Has {
		if g.how.Has[t] && g.tasks[t].state == Waiting {
			ended(t, Known{})
		}
	}
	if len(done) > 0 {
		g.do(&EndedBefore{Tasks: done})
	}
	if len(skipped) > 0 {
		g.do(&NotRun{Tasks: skipped})
	}
	g.queue = newQueue(len(g.tasks), g.how.Groups, func(t int) bool { return g.tasks[t].state == Waiting })
	if g.budget != nil {
		g.budget.begin(g.how.Groups, g.queue.waiting, known)
		g.lengths.earlier(g.budget.rows)
	}
	g.estimate()
	g.finishOrFeed()
}

func (g *gather) stop() {
	g.freed = g.freed || len(g.leased) > 0
	for _, l := range g.leased { // at once: end takes a time in proportion to their number
		l.on.leases = slices.DeleteFunc(l.on.leases, func(other *Lease) bool { return other == l })
		l.on.start(g.now)
		*l = Lease{}
	}
	g.leased = nil
	g.tasks, g.queue, g.lengths = g.tasks[:0], nil, nil
}

func (g *gather) step(e Event) {
	switch e := e.(type) {
	case *Tick:
		g.estimate()
		g.endBudgets()
		g.remind()
		g.speculate()
	case *ResultAnnounced:
		g.resultAnnounced(e)
	case *ResultStored:
		g.stored(e)
	case *ResultRecorded:
		if e.Round == g.number && g.tasks[e.Task].state == Recording {
			g.done(e.Task, e.Result)
		}
	case *ResultLost:
		g.lost(e)
	case *SkipsRecorded:
		if e.Round != g.number {
			break
		}
		from := len(g.listed)
		for _, t := range e.Tasks {
			if s := &g.tasks[t]; s.state == Skipping {
				s.state, s.attempt = Skipped, nil
				g.open--
				g.listed = append(g.listed, t)
			}
		}
		if tasks := g.listed[from:]; len(tasks) > 0 {
			g.do(&NotRun{Tasks: tasks})
		}
	case *TaskFailed:
		g.taskFailed(e)
	case *WorkerLacks:
		g.lacks(e)
	case *LeaderComputed:
		g.leaderComputed(e)
	case *CheckpointArrived: // of a checked task it is not used: its two leases begin alike
		if s := g.subJob(e.Round, e.Worker, e.Task); s == nil || s.state != Leased || s.check != unchecked {
			g.drop(Stale)
		} else {
			g.do(&UseCheckpoint{Task: e.Task, Worker: e.Worker})
		}
	case *ProgressArrived:
		if s := g.subJob(e.Round, e.Worker, e.Task); s == nil {
			g.drop(Stale)
		} else if s.state == Leased && s.leaseOf(e.Worker) != nil {
			g.do(&UseProgress{Task: e.Task})
		}
	case *PartialArrived:
		g.drop(Stale)
	}
	g.finishOrFeed()
}

func (g *gather) finishOrFeed() {
	switch {
	case g.over:
	case g.open > 0:
		g.feed()
	case g.late == 0:
		g.over = true
		g.do(&Finish{})
	}
}

// subJob returns the task of a sub-job that a worker tells of; nil: the message is stale, or the worker is not trusted.
func (g *gather) subJob(round uint64, worker string, t int) *task {
	if round != g.number || !g.workers.Trusts(worker) {
		return nil
	}
	return &g.tasks[t]
}

// resultAnnounced takes in that a worker has a result, which may be of a lease that it lost meanwhile.
func (g *gather) resultAnnounced(e *ResultAnnounced) {
	g.workers.answered(e.Worker, g.now)
	if e.Round != g.number {
		g.drop(Stale)
		g.count(TasksWasted, 1)
		return
	}
	s := &g.tasks[e.Task]
	if to, has := g.sent[e.Worker]; has && !g.how.Apart && len(to.results) < maxResults { // values are made of results
		if to.results == nil {
			to.results = make(map[digests.Digest]struct{})
			g.sent[e.Worker] = to
		}
		to.results[e.Result.Digest] = struct{}{}
	}
	if !g.workers.Trusts(e.Worker) || !s.isOpen() {
		g.count(TasksWasted, 1)
		return
	}
	g.do(g.computed.put(Computed{Worker: e.Worker, N: 1, Took: e.Result.Took}))
	g.announced++
	g.took += e.Result.Took
	if s.check == unchecked {
		g.use(e.Task, e.Worker, e.Result, false)
	} else {
		g.answer(e.Task, e.Worker, e.Result)
	}
}

// use has a result brought to the leader's disk. Another worker that computes the task stops.
func (g *gather) use(t int, worker string, right Result, _ bool) {
	s := g.at(t)
	if g.queue.remove(t); s.state == Waiting && g.budget != nil { // the result of a lost lease
		g.budget.start(t)
	}
	s.state = Storing
	g.dropFromChecks(t)
	for i := range s.leases {
		l := &s.leases[i]
		if l.on != nil && l.worker != worker {
			g.do(&SendStop{Worker: l.worker, Task: t})
		}
		g.end(l)
	}
	g.do(&Store{Worker: worker, Task: t, Result: right})
}

// stored has a result recorded. The round waits for that if it takes long to compute it again.
func (g *gather) stored(e *ResultStored) {
	if e.Round != g.number || g.tasks[e.Task].state != Storing {
		return
	}
	short := e.Result.Took > 0 && e.Result.Took < g.workers.limits.Short
	g.do(&Record{Task: e.Task, Result: e.Result, Async: short})
	if g.tasks[e.Task].state = Recording; short {
		g.done(e.Task, e.Result)
	}
}

func (g *gather) done(t int, r Result) {
	s := &g.tasks[t]
	s.state, s.attempt = Done, nil
	g.open--
	g.lengths.end(t, r.Took)
	if g.budget != nil {
		g.budget.end(t, r.Took)
	}
	g.do(&Ended{Task: t, Result: r})
}

// lost has a task computed again: its result could not be stored, or is not stored any longer.
func (g *gather) lost(e *ResultLost) {
	if e.Round != g.number {
		return
	}
	switch g.tasks[e.Task].state {
	case Storing, Recording:
	case Done:
		g.open++
	default:
		return
	}
	g.do(&RetriedLost{Task: e.Task, Err: e.Err})
	g.count(TasksRetried, 1)
	g.at(e.Task).verifying = false
	g.requeue(e.Task)
}

// requeue queues a task for a lease again. It has no lease any longer.
func (g *gather) requeue(t int) {
	if g.budget != nil {
		g.budget.again(t)
	}
	s := g.at(t)
	s.state = Waiting
	g.dropFromChecks(t)
	g.queue.add(t, s.avoid, s.notBefore, g.now)
}

// retry queues a leased task again if both its leases are over.
func (g *gather) retry(t int) {
	if s := &g.tasks[t]; s.state == Leased && s.leases[0].worker == "" && s.leases[1].worker == "" {
		g.requeue(t)
	}
}

// dropFromChecks takes a task off checks, which lists leased tasks.
func (g *gather) dropFromChecks(t int) {
	if g.tasks[t].check != unchecked {
		g.checks = slices.DeleteFunc(g.checks, func(other int) bool { return other == t })
	}
}

// feed gives waiting tasks to workers with free slots, and second leases to checked tasks.
func (g *gather) feed() {
	if g.seen != g.workers.version {
		g.seen = g.workers.version
		lost := make(map[string]int) // leases, by worker
		for _, l := range g.byTask() {
			if t := l.task; !g.isThere(l) {
				lost[l.worker]++
				g.count(TasksRetried, 1)
				g.end(l)
				g.retry(t)
			}
		}
		g.forgetGone(lost)
	}
	wanted := g.wants
	var closed map[string]bool // workers that tasks avoid and must, since no other has a slot
	for {
		var may []bool // by group
		if g.budget != nil {
			may = g.budget.may(g.now)
		}
		waiting := g.queue.count(g.now, may)
		t, avoid, ok := g.queue.first(may, closed, g.lengths)
		if !ok {
			g.wants = g.wants && waiting > 0
			break
		}
		on, next := g.workers.lease(g.claim, avoid, waiting)
		if on == nil {
			if next != nil {
				g.do(&WakeJob{Job: next.job})
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
		if g.budget != nil {
			g.budget.start(t)
		}
		if s := g.at(t); s.check != unchecked {
			g.checks = append(g.checks, t)
			slices.Sort(g.checks)
		}
		g.tasks[t].state = Leased
		g.leaseSlot(t, 0, on)
	}
	g.freed = g.freed || wanted && !g.wants // other jobs let this one go first
	for _, t := range slices.Clone(g.checks) {
		s := &g.tasks[t]
		if g.over || s.state != Leased || s.verifying || g.now.Before(s.notBefore) {
			continue
		}
		if s.leases[0].answered && s.leases[1].answered { // the leader could not decide
			g.settle(t)
			continue
		}
		for i := range s.leases {
			l, other := &s.leases[i], &s.leases[1-i]
			if l.worker != "" || other.worker == "" {
				continue
			}
			if other.worker != Verifier && len(g.able()) < 2 && g.verifies {
				*l = Lease{worker: Verifier, task: t}
				g.do(&Compute{Task: t})
			} else if on, _ := g.workers.lease(g.claim, other.worker, 0); on != nil && on.Name != other.worker {
				g.leaseSlot(t, i, on)
			}
		}
	}
}

// leaseSlot gives a task to a worker that has a slot for it.
func (g *gather) leaseSlot(t, i int, on *Worker) {
	g.workers.orders++
	l := &g.at(t).leases[i]
	*l = Lease{worker: on.Name, on: on, task: t, order: g.workers.orders, reminded: g.now}
	on.leases, g.leased = append(on.leases, l), append(g.leased, l)
	on.start(g.now)
	g.send(on.Name, uint32(t))
}

// remind sends workers the tasks again that they have had for a while. A worker that computes the task ignores it. A
// worker that was restarted, or lost the message, learns of it.
func (g *gather) remind() {
	for _, l := range g.byTask() {
		if g.now.Sub(l.reminded) >= g.workers.limits.Remind {
			l.reminded = g.now
			since := l.since
			g.send(l.worker, uint32(l.task))
			l.since = since
		}
	}
}

// speculate gives a task that takes long, or waits for a slot, to an idle worker as well, if no task waits. The first
// result is used.
func (g *gather) speculate() {
	var may []bool // a task that a budget holds back needs no slot
	if g.budget != nil {
		may = g.budget.may(g.now)
	}
	if g.over || g.queue.count(g.now, may) > 0 {
		return
	}
	for _, l := range g.byTask() {
		s, other := &g.tasks[l.task], 0
		if l == &s.leases[0] {
			other = 1
		}
		if s.check != unchecked || s.leases[other].worker != "" {
			continue
		}
		if !l.isBehind() {
			if g.announced == 0 {
				continue
			}
			usual := g.took / time.Duration(g.announced)
			if g.now.Sub(l.since) <= max(g.workers.limits.Slow, slowGather*usual) {
				continue
			}
		}
		on, _ := g.workers.lease(g.claim, l.worker, 0)
		if on == nil || on.Name == l.worker { // no slot is free, or there is no other worker
			return
		}
		g.count(TasksRetried, 1)
		g.leaseSlot(l.task, other, on)
	}
}

// endBudgets skips the tasks that cannot begin because their budget is spent, and stops the tasks that have used up
// their budget.
func (g *gather) endBudgets() {
	if g.budget == nil || g.over {
		return
	}
	for group, over := range g.budget.over(g.now) {
		if !over || g.queue.waiting[group] == 0 {
			continue
		}
		tasks := g.queue.removeGroup(int32(group))
		for _, t := range tasks {
			g.tasks[t].state = Skipping
		}
		g.budget.skip(group, len(tasks))
		g.do(&RecordSkips{Tasks: tasks})
	}
	for _, l := range g.byTask() {
		switch t, took := l.task, g.now.Sub(l.started); {
		case l.on == nil: // it ended with the other lease of its task
		case l.started.IsZero(): // it waits for a slot
		case l.limit == 0:
			l.limit = g.budget.computing(t, l.started)
		case took > l.limit:
			s := &g.tasks[t]
			for i := range s.leases {
				if s.leases[i].on != nil {
					g.do(&SendStop{Worker: s.leases[i].worker, Task: t})
				}
				g.end(&s.leases[i])
			}
			g.dropFromChecks(t)
			s.state = Skipping
			g.budget.end(t, took)
			g.do(&RecordSkips{Tasks: []uint32{uint32(t)}, Took: took})
		}
	}
}

// estimate estimates whether the end of the round is near: if a long task were given out last, all slots
// would wait for it.
func (g *gather) estimate() {
	l := g.lengths
	if l == nil || l.all == 0 || g.now.Sub(l.estimated) < estimateEvery {
		return
	}
	l.estimated = g.now
	slots := 0
	for _, w := range g.able() {
		slots += w.Slots
	}
	for _, a := range g.leased {
		if of, s := l.group[a.task], &g.tasks[a.task]; a == &s.leases[0] || s.leases[0].worker == "" {
			l.working[of] = max(l.working[of], g.now.Sub(a.since).Seconds())
		}
	}
	var may []bool
	if g.budget != nil {
		may = g.budget.may(g.now)
	}
	waiting, longest := 0.0, 0.0
	for of, n := range g.queue.waiting {
		if n > 0 && (may == nil || may[of]) {
			longest = max(longest, l.of(int32(of)))
			waiting += float64(float64(n) * l.of(int32(of)))
		}
	}
	l.near = waiting <= nearEnd*longest*float64(max(1, slots))
}
