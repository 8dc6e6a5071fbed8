package dispatch

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/coppice-ldl/coppice/protocol"
)

// Idle is why a worker computes nothing. The zero value says that no job is open.
type Idle struct {
	Reason protocol.IdleReason
	Job    uint64 // id; 0: the reason has to do with no job
	Text   string
}

// underWay is what a round says about workers without tasks. The zero value: no round is under way, or nobody can
// compute it.
type underWay struct {
	units int
	plan  *spreadPlan // of a summed round

	collected            bool
	left                 int // units without a result
	ready, resting, held int // units that may be given out, that rest after a failure, that a budget holds back
}

// standing is what counts of a worker for why it computes nothing.
type standing struct {
	id      string
	out     protocol.IdleReason // why it is not used; empty: it is
	why     string              // the same as text
	stalled time.Duration       // for which it gets no units of summed rounds
	recent  bool                // true if a result of it came less than shortly ago
}

// shortly bounds the time between two results of a worker that computes in each round: heartbeats, which say whether
// it computes, hardly ever meet units that take less than a millisecond.
const shortly = 2 * time.Second

// openJob is what counts of a job for why a worker computes nothing.
type openJob struct {
	id     uint64
	unable map[string]string // see Executor.unable
	at     underWay

	owners, targets map[string]bool // of a summed round's plan
}

// Idle tells of each worker that computes nothing why.
func (d *Dispatcher) Idle() map[string]Idle {
	now := time.Now()
	d.mu.Lock()
	var workers []standing
	for _, w := range d.crew.workers {
		if w.beat.Busy == 0 && w.busy == 0 || !w.usable() {
			workers = append(workers, d.crew.standing(w, now))
		}
	}
	var jobs []openJob
	for id, x := range d.jobs {
		jobs = append(jobs, openJob{id: id, unable: maps.Clone(x.unable), at: x.at})
	}
	d.mu.Unlock()
	slices.SortFunc(jobs, func(a, b openJob) int { return cmp.Compare(a.id, b.id) })
	for i := range jobs {
		jobs[i].readPlan()
	}
	idle := make(map[string]Idle)
	for i := range workers {
		if why, is := idleReason(&workers[i], jobs); is {
			idle[workers[i].id] = why
		}
	}
	return idle
}

func (c *crew) standing(w *worker, now time.Time) standing {
	s := standing{id: w.id, stalled: max(0, w.stalled.Sub(now)), recent: now.Sub(w.result) < shortly}
	s.out, s.why = c.refusal(&w.beat)
	switch {
	case s.out == protocol.IdleQuarantined:
		s.why += "; to use the worker again: coppice cluster trust " + w.id
	case s.out == protocol.IdleRefused:
		s.why += "; run the same version of Coppice everywhere"
	case s.out == "" && w.lost:
		s.out, s.why = protocol.IdleUnreachable, "the connection to the worker is lost; its log says why"
	}
	return s
}

// readPlan fills owners and targets. A plan is not changed after it was made.
func (j *openJob) readPlan() {
	j.owners, j.targets = make(map[string]bool), make(map[string]bool)
	if j.at.plan == nil {
		return
	}
	for u, id := range j.at.plan.owner {
		j.owners[id], j.targets[j.at.plan.target[u]] = true, true
	}
}

// ranks orders the reasons why jobs give a worker no units: what somebody can change comes first.
var ranks = []protocol.IdleReason{
	protocol.IdleMemory, protocol.IdleStalled, protocol.IdleShards, protocol.IdleJobWaits, protocol.IdleFewTasks, protocol.IdleNextRound,
}

// idleReason says why a worker computes nothing while these jobs are open; false: it computes. A job that it has units
// of decides, otherwise the first reason of ranks that any of the jobs has. It is a pure function.
func idleReason(w *standing, jobs []openJob) (idle Idle, is bool) {
	if w.out != "" {
		return Idle{Reason: w.out, Text: w.why}, true
	}
	for i := range jobs {
		j := &jobs[i]
		if j.owners[w.id] {
			return Idle{protocol.IdleNextRound, j.id, "the worker has finished its tasks of this round and waits for the next round"}, !w.recent
		}
		reason, text := j.withholds(w)
		if idle.Reason == "" || slices.Index(ranks, reason) < slices.Index(ranks, idle.Reason) {
			idle = Idle{reason, j.id, text}
		}
	}
	return idle, true
}

// withholds says why the job has no unit for a worker.
func (j *openJob) withholds(w *standing) (protocol.IdleReason, string) {
	at := &j.at
	switch why := j.unable[w.id]; {
	case why != "":
		return protocol.IdleMemory, why + "; start the worker with a larger --memory"
	case at.plan != nil && w.stalled > 0:
		return protocol.IdleStalled, fmt.Sprintf("the worker was too slow with its tasks; other workers get them for %v, or until it answers", w.stalled.Round(100*time.Millisecond))
	case j.targets[w.id]:
		return protocol.IdleShards, "the worker is still fetching shards of its tasks; it gets the tasks in the round after it has them"
	case at.plan != nil && slices.Contains(at.plan.workers, w.id):
		return protocol.IdleFewTasks, fmt.Sprintf("the worker has no task, because the round has only %s for %s", counted(at.units, "task"), counted(len(at.plan.workers), "worker"))
	case at.ready > 0 || at.units == 0 || !at.collected:
		return protocol.IdleNextRound, "the worker gets tasks when the leader next distributes tasks"
	case at.held > 0:
		return protocol.IdleJobWaits, counted(at.held, "task") + " cannot start yet: a time budget is used up, or other tasks with the same budget are running"
	case at.resting > 0:
		return protocol.IdleJobWaits, counted(at.resting, "task") + " failed and will be retried after a pause"
	}
	return protocol.IdleFewTasks, fmt.Sprintf("the round has %d of %s left, all on other workers", at.left, counted(at.units, "task"))
}

func counted(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
