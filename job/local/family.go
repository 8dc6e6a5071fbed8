package local

import (
	"context"
	"slices"
	"sync"

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
	tasks   []round.TaskProgress
}

// Do implements engine.Executor.
func (f *family) Do(ctx context.Context, n uint64, r *round.Round, res *round.Result) error {
	if f.subJobs = nil; r.SubJob != nil { // each task has one child, whoever asks
		for u := range r.Tasks {
			f.subJobs = append(f.subJobs, r.SubJob(u))
		}
		of := *r
		of.SubJob, r = round.Jobs(f.subJobs...), &of
	}
	f.tasks, f.most = make([]round.TaskProgress, len(f.subJobs)), max(f.most, len(f.subJobs))
	for u := range f.tasks {
		f.tasks[u].Loss = -1
		f.tasks[u].Done = r.Has != nil && r.Has[u]
	}
	return f.Executor.Do(ctx, n, r, res)
}

// child runs one of the round's sub-jobs.
func (f *family) subJob(ctx context.Context, j *round.Job) ([]byte, error) {
	unit := slices.Index(f.subJobs, j)
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

// put notes how far a child is, and tells how far all are together.
func (f *family) put(unit int, p round.Progress, done bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tasks[unit] = round.TaskProgress{Progress: p, Known: true, Done: done}
	if g, ok := f.trainer.(round.TaskReporter); ok {
		f.teller.tell(func() round.Progress { return g.RoundProgress(f.tasks) })
	}
}
