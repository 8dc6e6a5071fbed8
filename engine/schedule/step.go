package schedule

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// NewJob returns the job of an id, which no other of the workers' jobs has, on a dataset of these shards. Close ends it.
func (w *Workers) NewJob(id uint64, shards []dataset.ShardRef, o Options) *Job {
	if w.claims[id] != nil {
		panic(fmt.Sprintf("schedule: job %d is there already", id))
	}
	j := &Job{claim: &claim{job: id, unable: make(map[string]string)}, workers: w, verifies: o.Verifies, budget: o.Budget, sent: make(map[string]sent)}
	j.reduce = &reduce{Job: j, shards: shards, plans: make(map[int]*plan)}
	j.gather = &gather{Job: j}
	j.kind = j.reduce
	w.claims[id] = j.claim
	return j
}

// Begin begins a round. known has the results of a gather round that are recorded; audit lists the tasks, ascending, that
// two workers compute.
func (j *Job) Begin(dst []Action, now time.Time, number uint64, r *round.Round, known []Known, audit []int) []Action {
	j.now, j.list, j.listed, j.over = now, dst, j.listed[:0], false
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
	if j.kind = j.reduce; r.How == round.Gather {
		j.kind = j.gather
	}
	j.kind.begin(known)
	return j.take()
}

// Step applies an event and appends the actions that follow from it to dst.
func (j *Job) Step(dst []Action, now time.Time, e Event) []Action {
	j.now, j.list, j.listed = now, dst, j.listed[:0]
	switch {
	case e.Kind == ResultRecorded && e.Late, e.Kind == ResultLost && e.Late:
		j.late--
	case e.Kind == RecordingLate:
		j.late++
	}
	j.event = e // an argument would be allocated for each event
	if j.spec != nil {
		j.kind.step(&j.event)
	}
	return j.take()
}

// End ends the round, complete or not: its slots are free.
func (j *Job) End(dst []Action, now time.Time) []Action {
	j.now, j.list = now, dst
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
	j.now, j.list = now, dst
	j.endRound()
	for _, name := range slices.Sorted(maps.Keys(j.sent)) {
		j.do(Action{Kind: SendForget, Worker: name})
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
		j.do(Action{Kind: WakeOthers})
	}
	list := j.list
	j.list = nil
	return list
}

// Compares reports whether the result of a task is compared with another's.
func (j *Job) Compares(t int) bool { return t < len(j.tasks) && j.tasks[t].check != unchecked }

// Computed returns how long the slowest partial of the last reduce round was computed, as workers say.
func (j *Job) Computed() time.Duration { return j.reduce.slowest }
