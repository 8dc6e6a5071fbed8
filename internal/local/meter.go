package local

import (
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/algorithms/pipeline"
	"github.com/coppice-ldl/coppice/round"
)

// interval is the least time between two reports of progress.
const interval = 100 * time.Millisecond

// meter sums the progress of the jobs that run side by side.
type meter struct {
	report func(round.Progress)

	mu    sync.Mutex
	parts []round.UnitProgress
	last  time.Time
}

func newMeter(report func(round.Progress), parts int) *meter {
	return &meter{report: report, parts: make([]round.UnitProgress, parts)}
}

// part is the index of a fold's entry: the only one where a job has no folds.
func (m *meter) part(fold int) int { return min(fold, len(m.parts)-1) }

// observer returns the Observer of the job of one fold. It asks the trainer only
// when a report is due, so that short rounds stay short.
func (m *meter) observer(fold int) func(uint64, round.Trainer) error {
	if m.report == nil {
		return func(uint64, round.Trainer) error { return nil }
	}
	i, next := m.part(fold), time.Time{}
	return func(_ uint64, t round.Trainer) error {
		now := time.Now()
		if now.Before(next) {
			return nil
		}
		next = now.Add(interval)
		m.put(i, t.Progress(), now)
		return nil
	}
}

func (m *meter) put(i int, p round.Progress, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.parts[i] = round.UnitProgress{Progress: p, Known: true}
	if now.Sub(m.last) >= interval {
		m.last = now
		m.report(m.sum())
	}
}

// done notes the end of one job. A job that stopped early has done all its steps.
func (m *meter) done(fold int, p round.Progress) {
	p.Steps = p.Step
	m.mu.Lock()
	defer m.mu.Unlock()
	m.parts[m.part(fold)] = round.UnitProgress{Progress: p, Known: true, Done: true}
}

func (m *meter) flush() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.report != nil {
		m.report(m.sum())
	}
}

func (m *meter) sum() round.Progress {
	if len(m.parts) == 1 {
		return m.parts[0].Progress
	}
	return pipeline.SumFolds(m.parts)
}
