package schedule

import "fmt"

// The results of a task are compared if the audit's sample has it, or if its first result was not finite. Two workers
// compute such a task, or one worker and the leader. If the results differ and neither is the leader's, the leader computes
// the task as well and decides.

// leaseChecked gives each checked task of a reduce round two leases.
func (j *Job) leaseChecked() {
	for _, t := range j.checks {
		s := j.at(t)
		switch {
		case j.over:
			return
		case !s.isOpen() || s.verifying || j.now.Before(s.notBefore):
		case s.leases[0].answered && s.leases[1].answered: // the leader could not decide
			j.settle(t)
		default:
			j.leaseOne(t, 0)
			j.leaseOne(t, 1)
		}
	}
}

// leaseOne gives a lease of a checked task that nobody has, or that takes too long, to somebody who has not the other one.
func (j *Job) leaseOne(t, i int) {
	s := &j.tasks[t]
	l, other := &s.leases[i], &s.leases[1-i]
	if j.over || l.answered || l.worker == Verifier {
		return
	}
	if l.worker != "" {
		if j.now.Sub(l.since) < j.patience(false)<<s.copies {
			return
		}
		j.workers.slow(l.worker, j.now)
		s.copies = min(s.copies+1, maxCopies)
		j.count(TasksRetried, 1)
	}
	switch name := j.anyoneBut(t, l.worker, other.worker); {
	case name != "":
		j.give(t, i, name)
		j.send(name, uint32(t))
	case other.worker == "" || other.worker == Verifier: // there is no other worker
		if l.worker != "" {
			j.send(l.worker, uint32(t)) // the message may be lost
		}
	case j.verifies:
		*l = Lease{worker: Verifier, task: t}
		s.state = Leased
		j.do(Action{Kind: Compute, Task: t})
	case s.check == doubted:
		j.fail("%w; there is no other worker to check whether that worker or the job is at fault", j.notFiniteError(t, other))
	}
}

// anyoneBut picks a worker for a checked task: its owner or its standby if possible. It is none of two.
func (j *Job) anyoneBut(t int, a, b string) string {
	able := j.able()
	fits := func(name string) bool { return named(able, name) && name != a && name != b }
	if p := j.plans[len(j.tasks)]; p != nil {
		for _, name := range []string{p.owner[t], p.standby[t]} {
			if name != j.tasks[t].avoid && fits(name) {
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

// answer takes in one of the two results of a checked task, and compares them once both are here.
func (j *Job) answer(t int, worker string, r Result) {
	s := &j.tasks[t]
	l := s.leaseOf(worker)
	if l == nil || l.answered {
		j.drop(Duplicate)
		j.count(TasksWasted, 1)
		return
	}
	j.free(l)
	l.answered, l.result = true, r
	if j.gather == nil && r.NotFinite == "" {
		j.do(Action{Kind: KeepPartial, Task: t, Worker: worker})
	}
	if s.leases[0].answered && s.leases[1].answered {
		j.settle(t)
	}
}

// notFinite takes in that a worker's partial is not finite. The task is checked from then on.
func (j *Job) notFinite(t int, l *Lease, r Result) {
	s := &j.tasks[t]
	if s.check == unchecked {
		s.check = doubted
		s.leases[0], s.leases[1] = *l, Lease{}
		l = &s.leases[0]
		j.checks = append(j.checks, t)
		j.do(Action{Kind: Retried, Task: t, Worker: l.worker, Result: r, Reason: r.NotFinite})
	}
	j.answer(t, l.worker, r)
	j.leaseChecked()
}

// notFiniteError says where a job's numbers stopped being finite.
func (j *Job) notFiniteError(t int, l *Lease) error {
	step := ""
	if j.r.Steps[1] > j.r.Steps[0] {
		step = fmt.Sprintf(" at step %d", j.r.Steps[1]-1)
	}
	return fmt.Errorf("task %d of round %d%s on %s: %s", t, j.number, step, l.worker, l.result.NotFinite)
}

// settle compares the two results of a task.
func (j *Job) settle(t int) {
	s := &j.tasks[t]
	a, b := &s.leases[0], &s.leases[1]
	switch {
	case a.result.NotFinite != "" && b.result.NotFinite != "":
		j.fail("%w; the same task on %s: %s", j.notFiniteError(t, a), b.worker, b.result.NotFinite)
	case a.result.same(&b.result):
		j.accept(t, a.worker, a.result)
	case a.result.NotFinite != "" || b.worker == Verifier:
		j.judge(t, b.worker, b.result)
	case b.result.NotFinite != "" || a.worker == Verifier:
		j.judge(t, a.worker, a.result)
	case !j.verifies:
		j.fail("task %d of round %d: workers %s and %s computed different results, and no third result shows which is right", t, j.number, a.worker, b.worker)
	default:
		s.verifying = true
		j.do(Action{Kind: Compute, Task: t})
	}
}

// judge quarantines the workers whose results differ from the right one, which worker computed. A reduce round begins again
// after that: nothing else that a quarantined worker computed in it is used.
func (j *Job) judge(t int, worker string, right Result) {
	s := &j.tasks[t]
	j.count(ResultsDifferent, 1)
	for i := range s.leases {
		l := &s.leases[i]
		if l.worker == Verifier || l.worker == worker || l.result.same(&right) {
			continue
		}
		what := "differs from the leader's result"
		if l.result.NotFinite != "" {
			what = "had a result that is not finite, although another worker's result is: " + l.result.NotFinite
		}
		reason := fmt.Sprintf("task %d of round %d of job %d %s", t, j.number, j.id, what)
		if j.workers.Quarantine(l.worker, reason) {
			j.do(Action{Kind: Quarantine, Worker: l.worker, Jobs: j.workers.Served(l.worker), Reason: reason})
		}
		j.over = j.gather == nil
	}
	if j.over {
		if s.check == audited {
			j.count(ResultsCompared, 1)
		}
		j.do(Action{Kind: Restart})
		return
	}
	j.accept(t, worker, right)
}

// accept uses a result that was compared.
func (j *Job) accept(t int, worker string, right Result) {
	s := &j.tasks[t]
	if s.check == audited {
		j.count(ResultsCompared, 1)
	}
	if j.gather == nil {
		j.do(Action{Kind: UseKept, Task: t, Worker: worker})
		j.doneReduce(t)
		return
	}
	for i := range s.leases { // of equal results a worker's is taken: the leader need not store its own
		if l := &s.leases[i]; worker == Verifier && l.worker != "" && l.worker != Verifier && l.answered && l.result.same(&right) {
			worker, right = l.worker, l.result
		}
	}
	j.store(t, worker, right)
}

// leaderComputed takes in the leader's own result: as one of two, or to decide between two. If it has none, the leader
// computes the task again after a while.
func (j *Job) leaderComputed(e *Event) {
	if e.Round != j.number || e.Task >= len(j.tasks) || !j.tasks[e.Task].isOpen() {
		return
	}
	s := &j.tasks[e.Task]
	l := s.leaseOf(Verifier)
	switch {
	case e.Err != nil:
		err := fmt.Errorf("task %d on %s: %w", e.Task, Verifier, e.Err)
		if s.failing.IsZero() {
			s.failing = j.now
		}
		if j.isExhausted(s, e.BlobLost) {
			j.fail("%w", err)
			return
		}
		j.do(Action{Kind: Retried, Task: e.Task, Worker: Verifier, Pause: longestPause, Err: err})
		s.verifying, s.notBefore = false, j.now.Add(longestPause)
		if l != nil {
			j.end(l)
		}
		if j.gather != nil {
			j.requeue(e.Task)
		}
	case l != nil:
		j.answer(e.Task, Verifier, e.Result)
	case !s.verifying:
		// the task began again meanwhile
	case e.Result.NotFinite != "":
		j.fail("task %d of round %d on %s: %s", e.Task, j.number, Verifier, e.Result.NotFinite)
	default:
		if j.gather == nil {
			j.do(Action{Kind: KeepPartial, Task: e.Task, Worker: Verifier})
		}
		j.judge(e.Task, Verifier, e.Result)
	}
}
