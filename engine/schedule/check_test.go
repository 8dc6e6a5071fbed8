package schedule

import (
	"fmt"
	"slices"
)

// checkAll returns an error if the state of the workers, or of their jobs, breaks an invariant.
func checkAll(w *Workers, jobs ...*Job) error {
	held := make(map[*Lease]bool)
	for _, j := range jobs {
		for _, l := range j.leased {
			if held[l] = true; l.on == nil || !slices.Contains(l.on.leases, l) {
				return fmt.Errorf("job %d: the lease of task %d is not its worker's", j.job, l.task)
			}
		}
		if err := j.check(); err != nil {
			return fmt.Errorf("job %d: %w", j.job, err)
		}
	}
	shards := 0
	for name, at := range w.byName {
		shards += len(at.shards)
		if len(at.leases) > at.Slots+w.limits.Ahead {
			return fmt.Errorf("worker %s has %d leases and %d slots", name, len(at.leases), at.Slots)
		}
		for _, l := range at.leases {
			if !held[l] {
				return fmt.Errorf("worker %s has a lease of task %d that no job has", name, l.task)
			}
		}
	}
	if shards != w.shards || shards > maxShards {
		return fmt.Errorf("%d shards are counted, and there are %d", w.shards, shards)
	}
	return nil
}

func (j *Job) check() error {
	if j.spec == nil || j.over {
		return nil
	}
	open, isGather := 0, j.kind == kind(j.gather)
	for t := range j.tasks {
		s := &j.tasks[t]
		if s.state < Done {
			open++
		}
		if err := j.checkTask(t, s); err != nil {
			return fmt.Errorf("task %d in state %d: %w", t, s.state, err)
		}
	}
	if open != j.open {
		return fmt.Errorf("%d tasks are open, and %d are counted", open, j.open)
	}
	for _, t := range j.checks {
		s := &j.tasks[t]
		if s.check == unchecked || isGather && s.state != Leased {
			return fmt.Errorf("task %d in state %d is not compared", t, s.state)
		}
	}
	return nil
}

func (j *Job) checkTask(t int, s *task) error {
	leased, answered, isGather := 0, 0, j.kind == kind(j.gather)
	for i := range 2 {
		if s.attempt == nil || s.leases[i].worker == "" {
			continue
		}
		l := &s.leases[i]
		leased++
		if l.answered {
			answered++
		}
		switch {
		case l.task != t:
			return fmt.Errorf("its lease is of task %d", l.task)
		case l.answered && l.on != nil:
			return fmt.Errorf("%s has answered and takes a slot", l.worker)
		case isGather && !l.answered && l.worker != Verifier && l.on == nil:
			return fmt.Errorf("%s has it without a slot", l.worker)
		case i == 1 && l.worker == s.leases[0].worker:
			return fmt.Errorf("%s has both leases", l.worker)
		}
	}
	queued := isGather && j.gather.queue.turns[t] != 0
	switch {
	case s.state == Leased && leased == 0, s.state != Leased && leased > 0 && (isGather || s.isOpen()):
		return fmt.Errorf("it has %d leases", leased)
	case queued != (isGather && s.state == Waiting):
		return fmt.Errorf("it is in the queue: %v", queued)
	case s.state == Leased && leased == answered && s.check == unchecked:
		return fmt.Errorf("nobody computes it")
	case s.state == Leased && leased == 2 && answered == 2 && !s.verifying && !j.now.Before(s.notBefore):
		return fmt.Errorf("its results are not compared")
	case s.check == unchecked && answered > 0:
		return fmt.Errorf("its result waits for nothing")
	case s.state == Waiting && !isGather && s.check == unchecked && s.attempt != nil && s.avoid == "" &&
		len(j.able()) > 0 && j.seen == j.workers.version:
		return fmt.Errorf("nobody is given it")
	}
	return nil
}
