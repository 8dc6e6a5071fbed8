package sim

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/protocol"
)

// answerIn is how long a client waits for one answer.
const answerIn = 700 * time.Millisecond

// clients submit jobs and an experiment, and change them. They propose entries to the log
// directly, with tokens, and again until they have an answer.
type clients struct {
	given   *material
	dice    *dice
	cluster *cluster
	log     *raftLog
	checks  *checker
	stopped chan struct{} // closed at the end of the run

	audit    uint32 // the audit rate of jobs, in millionths
	nameless bool   // true if jobs have no name: only their token says that a submission is repeated
	hasty    bool   // true if jobs are cancelled when they are about to finish
}

// draw draws how clients behave in this run. It draws before the run, and run draws
// before it waits, so that the draws are the same in each run of a seed.
func (c *clients) draw() {
	c.audit = []uint32{0, 0, 0, 1e6, 2e5}[c.dice.n(5)]
	c.hasty, c.nameless = c.dice.chance(0.15), c.dice.chance(0.5)
}

// run submits two jobs that must end, and a long job that is cancelled and, in some runs,
// deleted. In half of the runs it also submits an experiment. It returns once the clients
// have what they want.
func (c *clients) run(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	first := uint64(1 + 2*c.dice.n(2))
	for _, seed := range []uint64{first, first + 1} {
		after, rest := c.dice.between(0, 300*time.Millisecond), c.dice.between(0, time.Second)
		pauses := c.dice.chance(0.2)
		all.Go(func() {
			wait.For(ctx, after)
			if j := c.submitJob(ctx, seed); j != nil && pauses {
				wait.For(ctx, rest)
				c.pauseJob(ctx, j, rest)
			}
		})
	}
	if c.dice.chance(0.5) {
		p := studyPlan{after: c.dice.between(0, 500*time.Millisecond), extend: c.dice.between(0, time.Second)}
		if c.dice.chance(0.5) {
			p.cancel = c.dice.between(1, 700*time.Millisecond)
		}
		if c.dice.chance(0.5) {
			p.budget = c.dice.between(1, maxBudget)
		}
		all.Go(func() { c.runStudy(ctx, p) })
	}
	after, then := c.dice.between(0, time.Second), c.dice.between(0, 1500*time.Millisecond)
	deletes := c.dice.chance(0.6)
	all.Go(func() {
		wait.For(ctx, after)
		if j := c.submitJob(ctx, longVariant); j != nil {
			wait.For(ctx, then)
			if c.cancelJob(ctx, j); deletes {
				c.deleteJob(ctx, j, longVariant)
			}
		}
	})
}

// submitJob submits the job of a seed, with the same token until it is acknowledged.
func (c *clients) submitJob(ctx context.Context, seed uint64) *state.Job {
	entry := c.submission(seed)
	index, value, err := c.propose(ctx, protocol.EncodeEntry(protocol.EntrySubmit, entry))
	if err != nil {
		return nil
	}
	j := value.(*state.Job)
	c.checks.promise(ack{index: index, token: entry.Token, job: j.ID})
	return j
}

func (c *clients) submission(seed uint64) protocol.SubmitEntry {
	e := protocol.SubmitEntry{
		Token: fmt.Sprintf("token-%d", seed), Name: fmt.Sprintf("canary-%d", seed), Dataset: dataName,
		Job: c.given.data[seed].job, AuditPPM: c.audit,
	}
	if c.nameless {
		e.Name = ""
	}
	return e
}

// deleteJob deletes a job that has ended until that is acknowledged. Then it repeats the
// submission, which must be refused.
func (c *clients) deleteJob(ctx context.Context, j *state.Job, seed uint64) {
	c.checks.deletes(j.ID)
	index, _, err := c.propose(ctx, protocol.EncodeEntry(protocol.EntryJobsDelete,
		protocol.JobsDeleteEntry{Jobs: []uint64{j.ID}}))
	if err != nil {
		return
	}
	c.checks.promise(ack{index: index, token: j.Token, job: j.ID, deleted: true})
	_, again, err := c.propose(ctx, protocol.EncodeEntry(protocol.EntrySubmit, c.submission(seed)))
	if err == nil {
		c.checks.fail("delete", "%v was deleted, and its submission makes %v", j, again)
	}
}

// cancelJob cancels a job until that is acknowledged, or refused because the job has
// ended. In the latter case the index is 0.
func (c *clients) cancelJob(ctx context.Context, j *state.Job) (index uint64) {
	entry := protocol.EncodeEntry(protocol.EntryCancel, protocol.JobEntry{Job: j.ID})
	index, _, err := c.propose(ctx, entry)
	if err != nil {
		return 0
	}
	c.checks.promise(ack{index: index, token: j.Token, job: j.ID, cancel: true})
	return index
}

// cancelBefore cancels a job, in some runs, just before the entry that finishes it. In an
// experiment it cancels only jobs of the first submission: the client would submit the
// runs of the others for ever.
func (c *clients) cancelBefore(finish []byte) {
	var e protocol.FinishEntry
	if !c.hasty || protocol.DecodeEntry(finish, &e) != nil {
		return
	}
	j := c.checks.lastJob(e.Job)
	if j.Experiment != "" && j.Submission() != firstStudy {
		return
	}
	done := c.log.insert(protocol.EncodeEntry(protocol.EntryCancel, protocol.JobEntry{Job: e.Job}))
	c.cluster.tasks.Go(func() {
		select {
		case o := <-done:
			if o.err == nil {
				c.checks.promise(ack{index: o.index, token: j.Token, job: j.ID, cancel: true})
			}
		case <-c.stopped:
		}
	})
}

// pauseJob pauses a job, and resumes it after d. A job that has ended refuses that.
func (c *clients) pauseJob(ctx context.Context, j *state.Job, d time.Duration) {
	if _, _, err := c.propose(ctx, protocol.EncodeEntry(protocol.EntryPause, protocol.JobEntry{Job: j.ID})); err != nil {
		return
	}
	wait.For(ctx, d)
	c.propose(ctx, protocol.EncodeEntry(protocol.EntryResume, protocol.JobEntry{Job: j.ID}))
}

// propose proposes an entry to one coordinator after the other, until one answers. The
// error is the error of ctx, or says why the state machine refuses.
func (c *clients) propose(ctx context.Context, entry []byte) (uint64, any, error) {
	for ctx.Err() == nil {
		for _, p := range c.cluster.coordinators {
			v := c.cluster.view(p)
			if v == nil || !v.host.running() {
				continue
			}
			try, cancel := context.WithTimeout(ctx, answerIn)
			index, value, err := v.Propose(try, entry)
			cancel()
			if err == nil || errors.Is(err, state.ErrFinal) || errors.Is(err, state.ErrDeleted) {
				return index, value, err
			}
		}
		wait.For(ctx, heartbeat/2)
	}
	return 0, nil, ctx.Err()
}

// studyPlan says after which times the client of an experiment submits it, extends it,
// and cancels its jobs; cancel 0: never. The first submission has the budget, but its
// free methods do not count; 0: no budget.
type studyPlan struct{ after, extend, cancel, budget time.Duration }

// runStudy submits an experiment, may cancel its jobs, and extends it by a method. Then
// it submits again what has not ended, until all runs have.
func (c *clients) runStudy(ctx context.Context, p studyPlan) {
	wait.For(ctx, p.after)
	index := c.submitRuns(ctx, 0, studyRuns(studyMethods-1), 0, p.budget)
	if p.cancel > 0 {
		wait.For(ctx, p.cancel)
		index = max(index, c.cancelStudy(ctx, index))
	}
	wait.For(ctx, p.extend)
	for n := 1; ctx.Err() == nil; n++ {
		left, all := c.runsLeft(index, studyRuns(studyMethods))
		if all {
			return
		}
		if len(left) > 0 {
			index = max(index, c.submitRuns(ctx, n, left, index, 0))
		}
		wait.For(ctx, heartbeat)
	}
}

// submitRuns submits runs as at most two jobs of one entry until that is acknowledged. It
// returns the index of the entry, or before if ctx is done. The methods that are not free
// share the budget, unless it is 0.
func (c *clients) submitRuns(ctx context.Context, n int, runs []round.Cell, before uint64,
	budget time.Duration) uint64 {
	e := protocol.ExperimentEntry{Name: studyName}
	half := (len(runs) + 1) / 2
	for i, some := range [][]round.Cell{runs[:half], runs[half:]} {
		if len(some) == 0 {
			continue
		}
		j := studyJob(c.given.manifest, some)
		if budget > 0 {
			j.Cells.Budgets = []round.CellBudget{{Of: "canaries", Seconds: budget.Seconds()}}
			for i, method := range methodsOf(j) {
				if method >= freeMethods {
					j.Cells.Rows[i].Budget = 1
				}
			}
		}
		e.Jobs = append(e.Jobs, protocol.SubmitEntry{
			Token: fmt.Sprintf("study-%d/%d", n, i), Name: fmt.Sprintf("%s.%d.%d", studyName, n, i), Dataset: dataName, Job: j,
		})
	}
	index, value, err := c.propose(ctx, protocol.EncodeEntry(protocol.EntryExperiment, e))
	if err != nil {
		return before
	}
	for i, j := range value.([]*state.Job) {
		c.checks.promise(ack{index: index, token: e.Jobs[i].Token, job: j.ID})
	}
	return index
}

// cancelStudy cancels the jobs of the experiment, as the state after an entry has them.
func (c *clients) cancelStudy(ctx context.Context, index uint64) (last uint64) {
	for ctx.Err() == nil {
		st := c.stateFrom(index)
		if st == nil {
			wait.For(ctx, heartbeat)
			continue
		}
		for _, j := range st.Jobs() {
			if j.Experiment == studyName && !j.State.Final() {
				last = max(last, c.cancelJob(ctx, j))
			}
		}
		return last
	}
	return 0
}

// stateFrom returns the state of a coordinator that has applied an entry, or nil.
func (c *clients) stateFrom(index uint64) *state.State {
	for _, p := range c.cluster.coordinators {
		if v := c.cluster.view(p); v != nil {
			if st := v.State(); st.Index() >= index {
				return st
			}
		}
	}
	return nil
}

// runsLeft lists the runs without a result that no job is going to compute, after an
// entry. all is true if each run has ended.
func (c *clients) runsLeft(index uint64, runs []round.Cell) (left []round.Cell, all bool) {
	st := c.stateFrom(index)
	if st == nil {
		return nil, false
	}
	open, ended := make(map[round.Cell]bool), make(map[round.Cell]bool)
	for _, j := range st.Jobs() {
		if j.Experiment != studyName {
			continue
		}
		places := runsOf(j.Job)
		for task, run := range places {
			open[run] = open[run] || !j.State.Final()
			if j.State == protocol.Done && c.checks.wasRun(j.ID, task) {
				ended[run] = true
			}
		}
		for p := range j.Gathered {
			if p.WasRun() {
				ended[places[p.Task]] = true
			}
		}
	}
	all = true
	for _, run := range runs {
		if !ended[run] && !open[run] {
			left = append(left, run)
		}
		all = all && ended[run]
	}
	return left, all
}
