package schedule

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/dataset"
)

// The patience with tasks of reduce rounds, as multiples of what the slowest partial of such a round usually takes.
const (
	slowPaces = 4 // if half of the round's tasks have ended
	lostPaces = 8 // in any case: a message may be lost
	maxCopies = 8 // patience doubles with each copy of a task, up to here
)

// delayRounds is the number of rounds over which a long delay is forgotten.
const delayRounds = 32

// pace is how long the partials of a job's reduce rounds take.
type pace struct {
	// usual is the computing time of the slowest partial of a round, by the round's op, smoothed. Waiting for workers that
	// do not answer is no part of it; otherwise each wait would lengthen the next one.
	usual   [256]time.Duration
	slowest time.Duration // computing time, in this round
	// delay is how long partials were lately under way: all that is not computing. On a slow link a partial waits behind
	// blobs, for longer than the round trips of small messages tell. The longest counts.
	delay      time.Duration
	roundDelay time.Duration // the longest in this round
	repeated   bool          // true if a task of the round was sent twice: roundDelay tells nothing
}

func (j *Job) beginReduce() {
	j.pace.slowest, j.pace.roundDelay, j.pace.repeated = 0, 0, false
	j.assign()
	j.leaseChecked()
}

func (j *Job) stepReduce(e *Event) {
	switch e.Kind {
	case Tick:
		j.passOn()
		j.retryRested()
		j.holdAgain()
		j.leaseChecked()
	case PartialArrived:
		j.partial(e)
	case WorkerLacks:
		j.lacks(e)
	case TaskFailed:
		j.taskFailed(e)
	case LeaderComputed:
		j.leaderComputed(e)
	case ResultAnnounced, CheckpointArrived, ProgressArrived:
		j.drop(Stale)
	}
	switch {
	case j.over:
	case j.open == 0:
		j.finishReduce()
	case j.assign():
		j.leaseChecked()
	}
}

func (j *Job) finishReduce() {
	j.over = true
	p := &j.pace
	p.usual[j.r.Op] += (p.slowest - p.usual[j.r.Op]) / 8
	if !p.repeated {
		p.delay = max(min(p.roundDelay, j.workers.limits.Lost), p.delay-p.delay/delayRounds)
	}
	j.holdAgain()
	j.do(Action{Kind: Finish})
}

// partial takes in the partial of a node of the reduction tree. The numbers are not here: actions say what to do with them.
func (j *Job) partial(e *Event) {
	j.workers.answered(e.Worker, j.now)
	if e.Round != j.number || !j.workers.Trusts(e.Worker) {
		j.drop(Stale)
		return
	}
	if e.Malformed {
		j.drop(Malformed)
		return
	}
	from := e.Task << e.Level
	to := min(from+1<<e.Level, len(j.tasks))
	took := min(e.Took, j.now.Sub(j.began))
	j.pace.slowest = max(j.pace.slowest, took)
	j.pace.roundDelay = max(j.pace.roundDelay, j.now.Sub(j.began)-took)
	j.do(Action{Kind: Computed, Worker: e.Worker, N: to - from, Took: e.Took})
	needed := false
	for t := from; t < to; t++ {
		s := &j.tasks[t]
		needed = needed || s.isOpen()
		if s.check == unchecked {
			continue
		}
		if e.Level > 0 { // what is compared is in no sum of a worker
			j.drop(Stale)
			return
		}
		if s.isOpen() {
			j.answer(t, e.Worker, e.Result)
			return
		}
	}
	if !needed {
		j.drop(Duplicate)
		j.count(TasksWasted, to-from)
		return
	}
	j.do(Action{Kind: UsePartial})
	for t := from; t < to; t++ {
		j.doneReduce(t)
	}
}

func (j *Job) doneReduce(t int) {
	if s := &j.tasks[t]; s.isOpen() {
		s.state = Done
		j.open--
	}
}

// assign gives the tasks that nobody has to workers, by the plan. It does nothing, and returns false, if the workers are as
// they were.
func (j *Job) assign() bool {
	if j.seen == j.workers.version {
		return false
	}
	j.seen = j.workers.version
	for t := range j.tasks {
		for i := range 2 {
			s := &j.tasks[t]
			if s.attempt == nil || s.leases[i].worker == "" || s.leases[i].worker == Verifier || s.leases[i].answered || j.isThere(&s.leases[i]) {
				continue
			}
			s.leases[i] = Lease{}
			if s.isOpen() {
				s.state = Waiting
				j.count(TasksRetried, 1)
			}
		}
	}
	j.forgetGone()
	able := j.able()
	if len(able) == 0 {
		return true // nobody is there: the next heartbeat changes that
	}
	p := j.plans[len(j.tasks)]
	made := p == nil || p.version != j.seen
	if made {
		p = makePlan(len(j.tasks), j.shards, able, p)
		p.version = j.seen
		j.plans[len(j.tasks)] = p
	}
	for _, w := range able {
		var tasks []uint32
		for t := range j.tasks {
			if s := &j.tasks[t]; p.owner[t] == w.Name && s.state == Waiting && s.check == unchecked && (s.attempt == nil || s.avoid == "") {
				j.give(t, 0, w.Name)
				tasks = append(tasks, uint32(t))
			}
		}
		j.send(w.Name, tasks...)
	}
	if made {
		j.held = j.now
		for _, name := range p.workers() {
			j.do(Action{Kind: SendHold, Worker: name, Shards: p.holdings(name, j.shards)})
		}
	}
	return true
}

// give makes a lease of a task of a reduce round, which takes no slot.
func (j *Job) give(t, i int, worker string) {
	s := j.at(t)
	s.leases[i] = Lease{worker: worker, task: t, since: j.now}
	s.state = Leased
}

// holdAgain tells workers again which shards they should hold and do not have: a message may be lost, and a fetch may fail.
func (j *Job) holdAgain() {
	p := j.plans[len(j.tasks)]
	if p == nil || j.now.Sub(j.held) < j.workers.limits.Hold {
		return
	}
	j.held = j.now
	for _, name := range p.workers() {
		w := j.workers.Get(name)
		if w == nil {
			continue
		}
		lacks := slices.DeleteFunc(p.holdings(name, j.shards), func(s dataset.ShardRef) bool { return w.shards[s.Digest] })
		if len(lacks) > 0 {
			j.do(Action{Kind: SendHold, Worker: name, Shards: lacks})
		}
	}
}

// patience is how long a task may take before it goes to another worker as well; half is true if half of the round's tasks
// have ended.
func (j *Job) patience(half bool) time.Duration {
	if half {
		return max(j.workers.limits.Slow, slowPaces*j.pace.usual[j.r.Op])
	}
	return max(j.workers.limits.Lost, lostPaces*j.pace.usual[j.r.Op])
}

// passOn gives the tasks that take too long to another worker: the first answer wins. A task is waited for twice as long
// after each copy.
func (j *Job) passOn() {
	patience := j.patience(2*j.open <= len(j.tasks))
	for t := range j.tasks {
		s := &j.tasks[t]
		if s.check != unchecked || s.state != Leased || j.now.Sub(s.leases[0].since) < patience<<s.copies {
			continue
		}
		has := s.leases[0].worker
		late := j.pace.delay
		if w := j.workers.byName[has]; w != nil {
			late = max(late, w.Late)
		}
		next := j.next(t)
		switch age := j.now.Sub(s.leases[0].since); {
		case age < (patience+late)<<s.copies:
			continue
		case next == has: // there is nobody else: the message may be lost
			if age < 2*(j.patience(false)+late)<<s.copies {
				continue
			}
		default:
			j.workers.slow(has, j.now)
		}
		s.copies = min(s.copies+1, maxCopies)
		j.giveTo(next, t)
	}
}

// next picks who computes a task after the worker that has it, or failed: its standby, or the next able worker by name. With
// a single worker it is that one, and with none "".
func (j *Job) next(t int) string {
	s, able := j.at(t), j.able()
	last := cmp.Or(s.leases[0].worker, s.avoid)
	if p := j.plans[len(j.tasks)]; p != nil && p.standby[t] != last && named(able, p.standby[t]) {
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

// giveTo gives a task to a worker in the place of the one that has it. An empty name is nobody.
func (j *Job) giveTo(worker string, t int) {
	if worker == "" {
		return
	}
	j.give(t, 0, worker)
	j.pace.repeated = true
	j.count(TasksRetried, 1)
	j.send(worker, uint32(t))
}

// retryRested gives out the tasks that failed and have waited for their pause.
func (j *Job) retryRested() {
	for t := range j.tasks {
		if s := &j.tasks[t]; s.state == Waiting && s.check == unchecked && s.attempt != nil && s.avoid != "" && !j.now.Before(s.notBefore) {
			j.giveTo(j.next(t), t)
		}
	}
}

// A task that fails for a reason that may pass (a full disk, a shard that is not available) is tried by each worker at once,
// and then after pauses that double.
const (
	firstPause   = 50 * time.Millisecond
	longestPause = 5 * time.Second
)

// pauseAfter returns how long a task waits after its n-th failure if there are so many workers.
func pauseAfter(n, workers int) time.Duration {
	if n < workers {
		return 0
	}
	return min(longestPause, firstPause<<min(n-workers, 20))
}

// LongestPause is the longest wait of a task that failed.
const LongestPause = longestPause

// taskFailed has a task tried again, or compared, or fails the job.
func (j *Job) taskFailed(e *Event) {
	if e.Round != j.number || e.Task >= len(j.tasks) || !j.workers.Trusts(e.Worker) {
		j.drop(Stale)
		return
	}
	s := &j.tasks[e.Task]
	l := s.leaseOf(e.Worker)
	switch {
	case !s.isOpen() || l == nil || l.answered: // another has it by now
		j.drop(Stale)
		return
	case e.Permanent:
		j.fail("%w", failure(e))
		return
	case e.Result.NotFinite != "" && j.gather == nil:
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
		j.unable[e.Worker] = cmp.Or(strings.TrimPrefix(e.Reason, "worker: "), "the worker has too little memory for its tasks")
		for _, p := range j.plans {
			p.version = 0 // it is made again without the worker
		}
		if !j.isAnyoneAble() {
			j.fail("no worker can compute the task: %w", failure(e))
			return
		}
	}
	if j.isExhausted(s, e.BlobLost) {
		j.fail("no worker could compute the task for %v: %w", j.now.Sub(s.failing).Round(time.Second), failure(e))
		return
	}
	pause := pauseAfter(s.tries, len(j.able()))
	s.notBefore = j.now.Add(pause)
	j.do(Action{Kind: Retried, Task: e.Task, Worker: e.Worker, Pause: pause, Reason: e.Reason, Err: failure(e)})
	switch {
	case j.gather != nil:
		j.requeue(e.Task)
	case s.check != unchecked:
		j.leaseChecked()
	default:
		j.retryRested()
	}
}

func failure(e *Event) error {
	return fmt.Errorf("task %d on worker %s: %s", e.Task, e.Worker, e.Reason)
}

// isAnyoneAble reports whether some worker has not said that it never can compute a task of the job.
func (j *Job) isAnyoneAble() bool {
	for name, w := range j.workers.byName {
		if w.refused == "" && j.unable[name] == "" {
			return true
		}
	}
	return false
}

// isExhausted reports whether a task has failed for so long that the job fails. Time in which no coordinator has a blob that
// the job needs does not count: the job goes on once one has it again.
func (j *Job) isExhausted(s *task, blobLost bool) bool {
	if j.now.Sub(s.failing) <= j.workers.limits.GiveUp {
		return false
	}
	if blobLost {
		s.failing = j.now
	}
	return !blobLost
}
