package schedule

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/coppice-ldl/coppice/dataset"
)

// The patience with tasks of reduce rounds, as multiples of what the slowest partial of such a round usually takes.
const (
	slowPaces = 4 // if half of the round's tasks have ended
	lostPaces = 8 // in any case: a message may be lost
	maxCopies = 8 // patience doubles with each copy of a task, up to here
)

const (
	// delayRounds is the number of rounds over which a long delay is forgotten.
	delayRounds = 32
	// usualRounds is the same for a long computing time. A tree of ldlboost has up to some tens of rounds, the longest
	// first.
	usualRounds = 64
	// firstSpeed is how many bytes of shards a second a worker gets through, at least, in the first round of an op.
	firstSpeed = 16 << 20
	// firstMost bounds how long that takes.
	firstMost = 30 * time.Second
)

// reduce is the part of a Job that schedules reduce rounds.
type reduce struct {
	*Job
	shards  []dataset.ShardRef // of the job's dataset
	plans   map[int]*plan      // by number of tasks
	held    time.Time          // when workers were last told which shards to hold
	scratch []uint32

	// usual is the longest computing time of a partial in recent rounds, by their op; 0: no round of the op has ended. The
	// longest counts, because rounds of an op differ: a tree's root has more samples than its other nodes. Waiting for
	// workers that do not answer is no part of it; otherwise each wait would lengthen the next one. Time beyond the
	// patience does not count: one worker may have stood still.
	usual   [256]time.Duration
	slowest time.Duration // computing time, in this round
	// answered has a bit for each task that a worker has computed: its shards are there, and what follows from them.
	answered map[answerer][]uint64
	// delay is how long partials were lately under way: all that is not computing. On a slow link a partial waits behind
	// blobs, for longer than the round trips of small messages tell. The longest counts.
	delay      time.Duration
	roundDelay time.Duration // the longest in this round
	repeated   bool          // true if a task of the round was sent twice: roundDelay tells nothing
}

// answerer is a process of a worker in the rounds of an op with so many tasks.
type answerer struct {
	worker *Worker
	op     uint8
	tasks  int
}

func (r *reduce) begin([]Known) {
	r.slowest, r.roundDelay, r.repeated = 0, 0, false
	r.assign()
	r.leaseChecked()
}

func (r *reduce) step(e Event) {
	switch e := e.(type) {
	case *Tick:
		r.passOn()
		r.retryRested()
		r.hold(false)
		r.leaseChecked()
	case *PartialArrived:
		r.partial(e)
	case *WorkerLacks:
		r.lacks(e)
	case *TaskFailed:
		r.taskFailed(e)
	case *LeaderComputed:
		r.leaderComputed(e)
	case *ResultAnnounced, *CheckpointArrived, *ProgressArrived:
		r.drop(Stale)
	}
	switch {
	case r.over:
	case r.open == 0:
		r.over = true
		usual := &r.usual[r.spec.Op]
		*usual = max(min(r.slowest, r.patience(false)), *usual-*usual/usualRounds)
		if !r.repeated {
			r.delay = max(min(r.roundDelay, r.workers.limits.Lost), r.delay-r.delay/delayRounds)
		}
		r.hold(false)
		r.do(&Finish{})
	case r.assign():
		r.leaseChecked()
	}
}

// partial takes in the partial of a node of the reduction tree. The numbers are not here: actions say what to do with
// them.
func (r *reduce) partial(e *PartialArrived) {
	r.workers.answered(e.Worker, r.now)
	if e.Round != r.number || !r.workers.Trusts(e.Worker) {
		r.drop(Stale)
		return
	}
	if e.Malformed {
		r.drop(Malformed)
		return
	}
	from := e.Task << e.Level
	to := min(from+1<<e.Level, len(r.tasks))
	took := min(e.Took, r.now.Sub(r.began))
	r.slowest = max(r.slowest, took)
	r.roundDelay = max(r.roundDelay, r.now.Sub(r.began)-took)
	r.do(r.computed.put(Computed{Worker: e.Worker, N: to - from, Took: e.Took}))
	needed, known := false, r.knownTo(e.Worker)
	for t := from; t < to; t++ {
		s := &r.tasks[t]
		known[t/64] |= 1 << (t % 64)
		needed = needed || s.isOpen()
		if s.check == unchecked {
			continue
		}
		if e.Level > 0 { // what is compared is in no sum of a worker
			r.drop(Stale)
			return
		}
		if s.isOpen() {
			r.answer(t, e.Worker, Result{Digest: e.Digest})
			return
		}
	}
	if !needed {
		r.drop(Duplicate)
		r.count(TasksWasted, to-from)
		return
	}
	r.do(&UsePartial{})
	for t := from; t < to; t++ {
		r.done(t)
	}
}

// use puts the right result into the reduction tree. If a worker was quarantined the round begins again: nothing else
// that it computed in the round is used.
func (r *reduce) use(t int, worker string, _ Result, quarantined bool) {
	if quarantined {
		r.over = true
		r.do(&Restart{})
		return
	}
	r.do(&UseKept{Task: t, Worker: worker})
	r.done(t)
}

func (r *reduce) stop() {}

func (r *reduce) eachLease(yield func(*Lease) bool) {
	for t := range r.tasks {
		s := &r.tasks[t]
		for i := range 2 {
			if s.isOpen() && !s.isFree() && s.leases[i].worker != "" && !s.leases[i].answered && !yield(&s.leases[i]) {
				return
			}
		}
	}
}

// retry has a task tried again that has lost a lease.
func (r *reduce) retry(t int) {
	r.waitIfFree(t)
	r.leaseChecked()
	if !r.over {
		r.retryRested()
	}
}

func (r *reduce) waitIfFree(t int) {
	if s := &r.tasks[t]; s.state == Leased && s.isFree() {
		s.state = Waiting
	}
}

func (r *reduce) done(t int) {
	if s := &r.tasks[t]; s.isOpen() {
		s.state = Done
		r.open--
	}
}

// assign gives the tasks that nobody has to workers, by the plan. It does nothing, and returns false, if the workers
// are as they were.
func (r *reduce) assign() bool {
	if r.seen == r.workers.version {
		return false
	}
	r.seen = r.workers.version
	var lost map[string]int // leases, by worker
	for t := range r.tasks {
		s := &r.tasks[t]
		for i := range 2 {
			if s.attempt == nil || s.leases[i].worker == "" || s.leases[i].worker == Verifier || s.leases[i].answered ||
				r.isThere(&s.leases[i]) {
				continue
			}
			name := s.leases[i].worker
			if r.end(&s.leases[i]); s.isOpen() {
				if lost == nil {
					lost = make(map[string]int)
				}
				lost[name]++
				r.count(TasksRetried, 1)
				r.waitIfFree(t)
			}
		}
	}
	r.forgetGone(lost)
	maps.DeleteFunc(r.answered, func(a answerer, _ []uint64) bool { return r.workers.byName[a.worker.Name] != a.worker })
	able := r.able()
	if len(able) == 0 {
		return true // nobody is there: the next heartbeat changes that
	}
	p := r.plans[len(r.tasks)]
	made := p == nil || p.version != r.seen
	if made {
		p = makePlan(len(r.tasks), r.shards, able, p)
		p.version = r.seen
		r.plans[len(r.tasks)] = p
	}
	for _, w := range able {
		tasks := r.scratch[:0]
		for t := range r.tasks {
			if s := &r.tasks[t]; p.owner[t] == w.Name && s.state == Waiting && s.check == unchecked &&
				(s.attempt == nil || s.avoid == "") {
				r.give(t, 0, w.Name)
				tasks = append(tasks, uint32(t))
			}
		}
		r.send(w.Name, tasks...)
		r.scratch = tasks
	}
	if made {
		r.hold(true)
	}
	return true
}

// give makes a lease of a task of a reduce round, which takes no slot.
func (r *reduce) give(t, i int, worker string) {
	s := r.at(t)
	s.leases[i] = Lease{worker: worker, task: t, since: r.now}
	s.state = Leased
}

// hold tells workers which shards they should hold: all of these, by a new plan, or now and then what they lack. A
// message may be lost, and a fetch may fail.
func (r *reduce) hold(all bool) {
	p := r.plans[len(r.tasks)]
	if p == nil || !all && r.now.Sub(r.held) < r.workers.limits.Hold {
		return
	}
	r.held = r.now
	holdings := p.holdings(r.shards)
	for _, name := range slices.Sorted(maps.Keys(holdings)) {
		shards, w := holdings[name], r.workers.Get(name)
		if !all && w != nil {
			shards = slices.DeleteFunc(shards, func(s dataset.ShardRef) bool { return w.shards[s.Digest] })
		}
		if all || w != nil && len(shards) > 0 {
			r.do(&SendHold{Worker: name, Shards: shards})
		}
	}
}

// knownTo returns the bits of a worker in answered.
func (r *reduce) knownTo(worker string) []uint64 {
	key := answerer{r.workers.byName[worker], r.spec.Op, len(r.tasks)}
	known := r.answered[key]
	if known == nil {
		known = make([]uint64, (len(r.tasks)+63)/64)
		if key.worker != nil {
			r.answered[key] = known
		}
	}
	return known
}

// patience is how long a task may take before it goes to another worker as well, if its worker has computed it before;
// half is true if half of the round's tasks have ended. In the first round of an op, firstPatience counts.
func (r *reduce) patience(half bool) time.Duration {
	usual, paces, least := r.usual[r.spec.Op], time.Duration(lostPaces), r.workers.limits.Lost
	if half {
		paces, least = slowPaces, r.workers.limits.Slow
	}
	if usual > 0 {
		return max(least, paces*usual)
	}
	return max(least, r.firstPatience())
}

// patienceWith is patience with a lease: firstPatience counts if its worker has not computed the task before.
func (r *reduce) patienceWith(l *Lease, half bool) time.Duration {
	patience := r.patience(half)
	if r.knownTo(l.worker)[l.task/64]>>(l.task%64)&1 == 0 {
		patience = max(patience, r.firstPatience())
	}
	return patience
}

// firstPatience is how long a worker may take for its first tasks of an op, by the shards of a worker.
func (r *reduce) firstPatience() time.Duration {
	bytes, workers := int64(0), int64(1)
	for _, s := range r.shards {
		bytes += s.Bytes
	}
	if p := r.plans[len(r.tasks)]; p != nil {
		workers = int64(len(p.able))
	}
	return time.Duration(min(float64(bytes/workers)/firstSpeed, firstMost.Seconds()) * float64(time.Second))
}

// passOn gives the tasks that take too long to another worker: the first answer wins. A task is waited for twice as
// long after each copy.
func (r *reduce) passOn() {
	half := 2*r.open <= len(r.tasks)
	least := r.patience(half)
	for t := range r.tasks {
		s := &r.tasks[t]
		if s.check != unchecked || s.state != Leased || r.now.Sub(s.leases[0].since) < least<<s.copies {
			continue
		}
		patience := r.patienceWith(&s.leases[0], half)
		has := s.leases[0].worker
		late := r.delay
		if w := r.workers.byName[has]; w != nil {
			late = max(late, w.Late)
		}
		next := r.next(t)
		switch age := r.now.Sub(s.leases[0].since); {
		case age < (patience+late)<<s.copies:
			continue
		case next == has: // there is nobody else: the message may be lost
			if age < 2*(r.patienceWith(&s.leases[0], false)+late)<<s.copies {
				continue
			}
		default:
			r.tooSlow(has)
		}
		s.copies = min(s.copies+1, maxCopies)
		r.giveTo(next, t)
	}
}

// tooSlow begins a slow period of a worker that loses a task.
func (r *reduce) tooSlow(worker string) {
	r.workers.slow(worker, r.now)
	r.do(&WorkerTrouble{Worker: worker, Trouble: TooSlow, Tasks: 1})
}

// next picks who computes a task after the worker that has it, or failed: its standby, or the next able worker by name.
// With a single worker it is that one, and with none "".
func (r *reduce) next(t int) string {
	s, able := r.at(t), r.able()
	last := cmp.Or(s.leases[0].worker, s.avoid)
	if p := r.plans[len(r.tasks)]; p != nil && p.standby[t] != last && named(able, p.standby[t]) {
		return p.standby[t]
	}
	if len(able) == 0 {
		return ""
	}
	at := slices.IndexFunc(able, func(w *Worker) bool { return w.Name == last })
	if at < 0 {
		return able[t%len(able)].Name
	}
	return able[(at+1)%len(able)].Name
}

// giveTo gives a task to a worker. The worker that has it loses its lease. An empty name is nobody.
func (r *reduce) giveTo(worker string, t int) {
	if worker == "" {
		return
	}
	r.give(t, 0, worker)
	r.repeated = true
	r.count(TasksRetried, 1)
	r.send(worker, uint32(t))
}

// retryRested gives out the tasks that failed and have waited for their pause.
func (r *reduce) retryRested() {
	for t := range r.tasks {
		if s := &r.tasks[t]; s.state == Waiting && s.check == unchecked && s.attempt != nil && s.avoid != "" &&
			!r.now.Before(s.notBefore) {
			r.giveTo(r.next(t), t)
		}
	}
}

// leaseChecked gives each checked task of a reduce round two leases.
func (r *reduce) leaseChecked() {
	for _, t := range r.checks {
		s := r.at(t)
		switch {
		case r.over:
			return
		case !s.isOpen() || s.verifying || r.now.Before(s.notBefore):
		case s.leases[0].answered && s.leases[1].answered: // the leader could not decide
			r.settle(t)
		default:
			r.leaseOne(t, 0)
			r.leaseOne(t, 1)
		}
	}
}

// leaseOne gives a lease of a checked task that nobody has, or that takes too long, to somebody who has not the other
// one.
func (r *reduce) leaseOne(t, i int) {
	s := &r.tasks[t]
	l, other := &s.leases[i], &s.leases[1-i]
	if r.over || l.answered || l.worker == Verifier {
		return
	}
	if l.worker != "" {
		if r.now.Sub(l.since) < r.patienceWith(l, false)<<s.copies {
			return
		}
		r.tooSlow(l.worker)
		s.copies = min(s.copies+1, maxCopies)
		r.count(TasksRetried, 1)
	}
	switch name := r.anyoneBut(t, l.worker, other.worker); {
	case name != "":
		r.give(t, i, name)
		r.send(name, uint32(t))
	case other.worker == "" || other.worker == Verifier: // there is no other worker
		if l.worker != "" {
			r.send(l.worker, uint32(t)) // the message may be lost
		}
	case r.verifies:
		*l = Lease{worker: Verifier, task: t}
		s.state = Leased
		r.do(&Compute{Task: t})
	case s.check == doubted:
		r.fail("%w; there is no other worker to check whether that worker or the job is at fault", r.notFiniteError(t, other))
	}
}

// anyoneBut picks a worker for a checked task: its owner or its standby if possible. It is none of two.
func (r *reduce) anyoneBut(t int, a, b string) string {
	able := r.able()
	fits := func(name string) bool { return named(able, name) && name != a && name != b }
	if p := r.plans[len(r.tasks)]; p != nil {
		for _, name := range []string{p.owner[t], p.standby[t]} {
			if name != r.tasks[t].avoid && fits(name) {
				return name
			}
		}
	}
	for k := range able {
		if name := able[(t+k)%len(able)].Name; fits(name) {
			return name
		}
	}
	return ""
}

// plan says which worker computes each task of a reduce round, and which one is its standby. It is not changed once
// made.
type plan struct {
	version uint64   // of the workers
	able    []string // workers that could have tasks
	target  []string // who should hold the task's shards
	owner   []string // who computes it: the target, unless another worker has the shards already
	standby []string // who has, or fetches, a copy; empty if there is one worker
}

// makePlan assigns tasks to workers (by name, at least one). It keeps what prev assigned if the balance allows it: a
// worker that joins takes over its share only, and a worker that leaves changes nothing else.
func makePlan(tasks int, shards []dataset.ShardRef, workers []*Worker, prev *plan) *plan {
	p := &planner{tasks: tasks, shards: shards, workers: workers, load: make([]int, len(workers))}
	p.limit = (tasks + len(workers) - 1) / len(workers)
	out := &plan{target: make([]string, tasks), owner: make([]string, tasks), standby: make([]string, tasks)}
	for _, w := range workers {
		out.able = append(out.able, w.Name)
	}
	load := make([]int, len(workers)) // tasks of standbys, by worker
	for t, target := range p.targets(prev) {
		out.target[t] = workers[target].Name
		out.owner[t] = workers[p.ownerNow(t, target, prev)].Name
		best := -1 // of the standbys, which are spread evenly over the other workers
		for i := 1; i < len(workers); i++ {
			w := (target + i) % len(workers)
			if best < 0 || p.held(t, w) > p.held(t, best) || p.held(t, w) == p.held(t, best) && load[w] < load[best] {
				best = w
			}
		}
		if best >= 0 {
			load[best]++
			out.standby[t] = workers[best].Name
		}
	}
	return out
}

// holdings returns the shards that each worker should hold, as target or standby.
func (p *plan) holdings(shards []dataset.ShardRef) map[string][]dataset.ShardRef {
	all := make(map[string][]dataset.ShardRef)
	for t := range p.target {
		for _, name := range []string{p.target[t], p.standby[t]} {
			if name != "" {
				all[name] = append(all[name], shards[t*len(shards)/len(p.target):(t+1)*len(shards)/len(p.target)]...)
			}
		}
	}
	return all
}

type planner struct {
	tasks, limit int
	shards       []dataset.ShardRef
	workers      []*Worker
	load         []int // tasks, by worker
}

// held counts the shards of a task that a worker has.
func (p *planner) held(t, w int) (n int) {
	for _, s := range p.of(t) {
		if p.workers[w].shards[s.Digest] {
			n++
		}
	}
	return n
}

func (p *planner) of(t int) []dataset.ShardRef {
	return p.shards[t*len(p.shards)/p.tasks : (t+1)*len(p.shards)/p.tasks]
}

func (p *planner) holdsAll(t, w int) bool { return p.held(t, w) == len(p.of(t)) }

func (p *planner) find(name string) int {
	return slices.IndexFunc(p.workers, func(w *Worker) bool { return w.Name == name })
}

// targets chooses the worker that should hold each task's shards: the worker of the plan before, or a worker below the
// limit. The worker with most of the shards is best, then the worker of the task's block, then the worker with the
// fewest tasks.
func (p *planner) targets(prev *plan) []int {
	at := make([]int, p.tasks)
	for t := range at {
		at[t] = -1
		if prev == nil {
			continue
		}
		if w := p.find(prev.target[t]); w >= 0 && p.load[w] < p.limit {
			at[t] = w
			p.load[w]++
		}
	}
	for t := range at {
		if at[t] >= 0 {
			continue
		}
		block := t * len(p.workers) / p.tasks
		for w := range p.workers {
			if p.load[w] < p.limit && (at[t] < 0 || p.better(t, w, at[t], block)) {
				at[t] = w
			}
		}
		p.load[at[t]]++
	}
	for t := len(at) - 1; t >= 0; t-- { // until no worker has two tasks more than another
		least := 0
		for w := range p.load {
			if p.load[w] < p.load[least] {
				least = w
			}
		}
		if p.load[at[t]] > p.load[least]+1 {
			p.load[at[t]]--
			p.load[least]++
			at[t] = least
		}
	}
	return at
}

// better reports whether a worker suits a task better than the best so far.
func (p *planner) better(t, w, best, block int) bool {
	if a, b := p.held(t, w), p.held(t, best); a != b {
		return a > b
	}
	if w == block || best == block {
		return w == block
	}
	return p.load[w] < p.load[best]
}

// ownerNow is the target if it has the task's shards or nobody has; otherwise who computed the task before; otherwise
// the first that has them.
func (p *planner) ownerNow(t, target int, prev *plan) int {
	if p.holdsAll(t, target) {
		return target
	}
	if prev != nil {
		if w := p.find(prev.owner[t]); w >= 0 && p.holdsAll(t, w) {
			return w
		}
	}
	for w := range p.workers {
		if p.holdsAll(t, w) {
			return w
		}
	}
	return target
}
