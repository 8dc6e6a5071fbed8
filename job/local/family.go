package local

import (
	"context"
	"slices"
	"sync"

	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
)

// childRunner runs a child job and returns its encoded outcome.
type childRunner func(ctx context.Context, j *round.Job, o Options) ([]byte, error)

// family is a job and the child jobs of the round that it is in. It implements
// engine.Executor, to see the rounds, and runs the child jobs.
type family struct {
	engine.Executor
	trainer round.Trainer
	teller  *teller
	take    func(unit int, part []byte) error // a result, before the round ends; nil: only at its end
	run     childRunner
	most    int // children that a round had

	mu       sync.Mutex
	children []*round.Job
	units    []round.UnitProgress
}

// Do implements engine.Executor.
func (f *family) Do(ctx context.Context, n uint64, r *round.Round, res *round.Result) error {
	if f.children = nil; r.Child != nil { // each unit has one child, whoever asks
		for u := range r.Units {
			f.children = append(f.children, r.Child(u))
		}
		of := *r
		of.Child, r = round.Jobs(f.children...), &of
	}
	f.units, f.most = make([]round.UnitProgress, len(f.children)), max(f.most, len(f.children))
	for u := range f.units {
		f.units[u].Loss = -1
		f.units[u].Done = r.Has != nil && r.Has[u]
	}
	return f.Executor.Do(ctx, n, r, res)
}

// child runs one of the round's child jobs.
func (f *family) child(ctx context.Context, j *round.Job) ([]byte, error) {
	unit := slices.Index(f.children, j)
	part, err := f.run(ctx, j, Options{Progress: func(p round.Progress) { f.put(unit, p, false) }})
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	last := f.units[unit].Progress
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
	f.units[unit] = round.UnitProgress{Progress: p, Known: true, Done: done}
	if g, ok := f.trainer.(round.UnitReporter); ok {
		f.teller.tell(func() round.Progress { return g.RoundProgress(f.units) })
	}
}
