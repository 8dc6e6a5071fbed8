package schedule

import (
	"fmt"
	"maps"
	"slices"
)

// The results of a task are compared if the audit's sample has it, or if its first result was not finite. Two workers
// compute such a task, or one worker and the leader. If the results differ and neither is the leader's, the leader
// computes the task as well and decides.

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
	if j.kind == kind(j.reduce) && r.NotFinite == "" {
		j.do(&KeepPartial{Task: t, Worker: worker})
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
		j.do(&RetriedNotFinite{Task: t, Worker: l.worker, Reason: r.NotFinite})
	}
	j.answer(t, l.worker, r)
	j.kind.retry(t)
}

// notFiniteError says which task of a job had the first number that is not finite.
func (j *Job) notFiniteError(t int, l *Lease) error {
	step := ""
	if how := j.spec.Reduce(); how.Steps[1] > how.Steps[0] {
		step = fmt.Sprintf(" at step %d", how.Steps[1]-1)
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
		j.accept(t, a.worker, a.result, false)
	case a.result.NotFinite != "":
		j.judge(t, b.worker, b.result)
	case b.result.NotFinite != "":
		j.judge(t, a.worker, a.result)
	case a.worker == Verifier:
		j.judge(t, a.worker, a.result)
	case b.worker == Verifier:
		j.judge(t, b.worker, b.result)
	case !j.verifies:
		j.fail("task %d of round %d: workers %s and %s computed different results, and no third result shows which is right",
			t, j.number, a.worker, b.worker)
	default:
		s.verifying = true
		j.do(&Compute{Task: t})
	}
}

// judge quarantines the workers with another result than the right one, which worker computed, and uses the right one.
func (j *Job) judge(t int, worker string, right Result) {
	s := &j.tasks[t]
	quarantined := false
	j.count(ResultsDifferent, 1)
	for i := range s.leases {
		l := &s.leases[i]
		if l.worker == Verifier || l.worker == worker || l.result.same(&right) {
			continue
		}
		what := "differs from the leader's result"
		if l.result.NotFinite != "" {
			what = fmt.Sprintf("had a result that is not finite (%s); the result of %s is finite", l.result.NotFinite, worker)
		}
		reason := fmt.Sprintf("task %d of round %d of job %d %s", t, j.number, j.job, what)
		if j.workers.Quarantine(l.worker, reason) {
			j.do(&Quarantine{Worker: l.worker, Jobs: slices.Sorted(maps.Keys(j.workers.served[l.worker])), Reason: reason})
		}
		quarantined = true
	}
	j.accept(t, worker, right, quarantined)
}

// accept uses a result that was compared. quarantined is true if another worker's was wrong.
func (j *Job) accept(t int, worker string, right Result, quarantined bool) {
	s := &j.tasks[t]
	if s.check == audited {
		j.count(ResultsCompared, 1)
	}
	for i := range s.leases { // a worker's result is taken in the place of the leader's, which need not be stored
		if l := &s.leases[i]; worker == Verifier && l.worker != Verifier && l.answered && l.result.same(&right) {
			worker, right = l.worker, l.result
		}
	}
	j.kind.use(t, worker, right, quarantined)
}

// leaderComputed takes in the leader's own result: as one of two, or to decide between two. If it has none, the leader
// computes the task again after a while.
func (j *Job) leaderComputed(e *LeaderComputed) {
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
		if s.isExhausted(j.now, j.workers.limits.GiveUp, e.BlobLost) {
			j.fail("%w", err)
			return
		}
		j.do(&Retried{Task: e.Task, Worker: Verifier, Pause: LongestPause, Err: err})
		s.verifying, s.notBefore = false, j.now.Add(LongestPause)
		if l != nil {
			j.end(l)
		}
		j.kind.retry(e.Task)
	case l != nil:
		j.answer(e.Task, Verifier, e.Result)
	case !s.verifying:
		// the task began again meanwhile
	case e.Result.NotFinite != "":
		j.fail("task %d of round %d on %s: %s", e.Task, j.number, Verifier, e.Result.NotFinite)
	default:
		if j.kind == kind(j.reduce) {
			j.do(&KeepPartial{Task: e.Task, Worker: Verifier})
		}
		j.judge(e.Task, Verifier, e.Result)
	}
}
