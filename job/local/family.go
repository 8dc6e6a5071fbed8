package local

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
)

// childRunner runs a sub-job and returns its encoded outcome.
type subJobRunner func(ctx context.Context, j *round.Job, o Options) ([]byte, error)

// family is a job and the sub-jobs of the round that it is in. It implements
// engine.Executor, to see the rounds, and runs the sub-jobs.
type family struct {
	engine.Executor
	trainer round.Trainer
	teller  *teller
	take    func(unit int, part []byte) error // a result, before the round ends; nil: only at its end
	run     subJobRunner
	most    int // children that a round had

	mu      sync.Mutex
	subJobs []*round.Job
	tasks   []round.TaskProgress // of a gather round
	began   time.Time            // the round
}

// Do implements engine.Executor.
func (f *family) Do(ctx context.Context, n uint64, r *round.Round, res *round.Result) error {
	f.subJobs = nil
	how := r.Gather()
	if how != nil && how.SubJob != nil { // each task has one child, for all who ask
		for u := range r.Tasks {
			f.subJobs = append(f.subJobs, how.SubJob(u))
		}
		of, same := *r, *how
		same.SubJob = round.Jobs(f.subJobs...)
		of.How, r = &same, &of
	}
	if f.most = max(f.most, len(f.subJobs)); how != nil {
		f.tasks, f.began = make([]round.TaskProgress, r.Tasks), time.Now()
		for u := range f.tasks {
			f.tasks[u].Loss = -1
			f.tasks[u].Done = how.Skips(u)
		}
	}
	return f.Executor.Do(ctx, n, r, res)
}

// subJob runs one of the round's sub-jobs.
func (f *family) subJob(ctx context.Context, j *round.Job) ([]byte, error) {
	unit := slices.Index(f.subJobs, j)
	f.put(unit, round.Progress{Loss: -1}, false)
	part, err := f.run(ctx, j, Options{Progress: func(p round.Progress) { f.put(unit, p, false) }})
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	last := f.tasks[unit].Progress
	f.mu.Unlock()
	f.put(unit, last, true)
	if f.take == nil {
		return part, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return part, f.take(unit, part)
}

// result notes how far a task without a sub-job is by its result. What is wrong with the result, Fold says.
func (f *family) result(task int, result []byte) {
	g, ok := f.trainer.(round.TaskReporter)
	if !ok || f.subJobs != nil || !f.teller.asked() {
		return
	}
	if p, err := g.ResultProgress(result); err == nil {
		f.put(task, p, true)
	}
}

// put notes how far a task is, and tells how far all are together.
func (f *family) put(task int, p round.Progress, done bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := &f.tasks[task]
	t.Note(p, time.Since(f.began).Seconds())
	t.Done = done
	if g, ok := f.trainer.(round.TaskReporter); ok {
		f.teller.tell(func() round.Progress { return g.RoundProgress(f.tasks) })
	}
}
