package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/engine/round"
)

// Executor computes the tasks of a round and combines their results.
type Executor interface {
	// Do runs round number n of the job and fills res, which stays valid until
	// the next call. It blocks until every task has a result. An error means that the
	// job cannot go on, or that ctx is done.
	Do(ctx context.Context, n uint64, r *round.Round, res *round.Result) error
}

// Observer is called after every Fold; rounds is the number of rounds folded since
// the job began. It may encode the trainer's state. An error stops the job.
type Observer func(rounds uint64, t round.Trainer) error

// Drive runs rounds from number start until the training is complete or ctx ends.
func Drive(ctx context.Context, t round.Trainer, start uint64, x Executor, observe Observer) error {
	var res round.Result
	for n := start; ; n++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		r, err := t.Next()
		if err != nil {
			return fmt.Errorf("round %d: %w", n, err)
		}
		if r == nil {
			return nil
		}
		if err := x.Do(ctx, n, r, &res); err != nil {
			return fmt.Errorf("round %d: %w", n, err)
		}
		if r.Reduce() != nil && res.Sum == nil {
			return fmt.Errorf("round %d: the result lacks the sum of the tasks' results", n)
		}
		if err := t.Fold(&res); err != nil {
			return fmt.Errorf("round %d: %w", n, err)
		}
		if err := observe(n+1, t); err != nil {
			return err
		}
	}
}

// RoundTimes adds up the durations of rounds by their Kind. It is safe for concurrent use:
// concurrent jobs may share one.
type RoundTimes struct {
	mu     sync.Mutex
	byKind map[string]time.Duration
}

// Seconds returns the total duration, in seconds, of the rounds of each Kind.
func (s *RoundTimes) Seconds() map[string]float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	seconds := make(map[string]float64)
	for kind, d := range s.byKind {
		seconds[kind] = d.Seconds()
	}
	return seconds
}

// ComputeTimer is an Executor that knows how long workers computed for a round.
type ComputeTimer interface {
	Executor
	// Computed returns the longest compute time that a worker reported for a partial of the
	// last reduce round; 0: unknown.
	Computed() time.Duration
}

// Measure returns an Executor that adds the durations of x's rounds to s. If x is a
// ComputeTimer, a reduce round counts at most its Computed. skipChildren leaves out rounds
// whose tasks are whole jobs, for callers that measure those jobs themselves.
func (s *RoundTimes) Measure(x Executor, skipChildren bool) Executor {
	return &timedExecutor{x, s, skipChildren}
}

type timedExecutor struct {
	Executor
	times       *RoundTimes
	skipSubJobs bool
}

// Do implements Executor.
func (m *timedExecutor) Do(ctx context.Context, n uint64, r *round.Round, res *round.Result) error {
	began := time.Now()
	err := m.Executor.Do(ctx, n, r, res)
	if m.skipSubJobs && r.Gather() != nil && r.Gather().SubJob != nil {
		return err
	}
	took := time.Since(began)
	if c, ok := m.Executor.(ComputeTimer); ok && r.Reduce() != nil && c.Computed() > 0 {
		took = min(took, c.Computed())
	}
	m.times.mu.Lock()
	defer m.times.mu.Unlock()
	if m.times.byKind == nil {
		m.times.byKind = make(map[string]time.Duration)
	}
	m.times.byKind[r.Kind] += took
	return err
}
