package engine

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/engine/round"
)

// RoundTimes adds up the durations of rounds by their Kind. It is safe for concurrent use:
// concurrent jobs may share one.
type RoundTimes struct {
	mu     sync.Mutex
	byKind map[string]time.Duration
}

// ByKind returns the total duration of the rounds of each Kind.
func (s *RoundTimes) ByKind() map[string]time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.byKind)
}

// Seconds is ByKind in seconds.
func (s *RoundTimes) Seconds() map[string]float64 {
	seconds := make(map[string]float64)
	for kind, d := range s.ByKind() {
		seconds[kind] = d.Seconds()
	}
	return seconds
}

func (s *RoundTimes) add(kind string, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byKind == nil {
		s.byKind = make(map[string]time.Duration)
	}
	s.byKind[kind] += d
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
	if m.skipSubJobs && r.SubJob != nil {
		return err
	}
	took := time.Since(began)
	if c, ok := m.Executor.(ComputeTimer); ok && r.How == round.Reduce && c.Computed() > 0 {
		took = min(took, c.Computed())
	}
	m.times.add(r.Kind, took)
	return err
}
