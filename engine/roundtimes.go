package engine

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/algorithms"
)

// Spent sums up how long rounds took, by their Kind. It is safe for concurrent use: jobs
// side by side may share one.
type RoundTimes struct {
	mu     sync.Mutex
	byKind map[string]time.Duration
}

// Rounds returns the time spent on rounds of each Kind.
func (s *RoundTimes) ByKind() map[string]time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.byKind)
}

// Seconds is Rounds in seconds.
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

// Computer is an Executor that can tell how long others computed for a round.
type ComputeTimer interface {
	Executor
	// Computed returns how long the slowest part of the last summed round was computed, as who
	// computed it says; 0: it is not known.
	Computed() time.Duration
}

// Measure returns an Executor that adds the time of x's rounds to s: for a Computer, no
// more of it than was computed. Rounds whose units are whole jobs are left out where these
// are measured by themselves (apart).
func (s *RoundTimes) Measure(x Executor, skipChildren bool) Executor {
	return &timedExecutor{x, s, skipChildren}
}

type timedExecutor struct {
	Executor
	times        *RoundTimes
	skipChildren bool
}

// Do implements Executor.
func (m *timedExecutor) Do(ctx context.Context, n uint64, r *algorithms.Round, res *algorithms.Result) error {
	began := time.Now()
	err := m.Executor.Do(ctx, n, r, res)
	if m.skipChildren && r.Children != nil {
		return err
	}
	took := time.Since(began)
	if c, ok := m.Executor.(ComputeTimer); ok && r.How == algorithms.Sum && c.Computed() > 0 {
		took = min(took, c.Computed())
	}
	m.times.add(r.Kind, took)
	return err
}
