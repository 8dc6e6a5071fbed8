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
type Spent struct {
	mu     sync.Mutex
	rounds map[string]time.Duration
}

// Rounds returns the time spent on rounds of each Kind.
func (s *Spent) Rounds() map[string]time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.rounds)
}

// Seconds is Rounds in seconds.
func (s *Spent) Seconds() map[string]float64 {
	seconds := make(map[string]float64)
	for kind, d := range s.Rounds() {
		seconds[kind] = d.Seconds()
	}
	return seconds
}

func (s *Spent) add(kind string, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rounds == nil {
		s.rounds = make(map[string]time.Duration)
	}
	s.rounds[kind] += d
}

// Computer is an Executor that can tell how long others computed for a round.
type Computer interface {
	Executor
	// Computed returns how long the slowest part of the last summed round was computed, as who
	// computed it says; 0: it is not known.
	Computed() time.Duration
}

// Measure returns an Executor that adds the time of x's rounds to s: for a Computer, no
// more of it than was computed. Rounds whose units are whole jobs are left out where these
// are measured by themselves (apart).
func (s *Spent) Measure(x Executor, apart bool) Executor { return &measured{x, s, apart} }

type measured struct {
	Executor
	spent *Spent
	apart bool
}

// Do implements Executor.
func (m *measured) Do(ctx context.Context, n uint64, r *algorithms.Round, res *algorithms.Result) error {
	began := time.Now()
	err := m.Executor.Do(ctx, n, r, res)
	if m.apart && r.Children != nil {
		return err
	}
	took := time.Since(began)
	if c, ok := m.Executor.(Computer); ok && r.How == algorithms.Sum && c.Computed() > 0 {
		took = min(took, c.Computed())
	}
	m.spent.add(r.Kind, took)
	return err
}
