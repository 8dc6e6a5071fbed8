package local

import (
	"fmt"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/algorithms"
)

// interval is the least time between two reports of progress.
const interval = 100 * time.Millisecond

// meter sums the progress of the jobs that run side by side.
type meter struct {
	report func(algorithms.Progress)

	mu    sync.Mutex
	parts []algorithms.Progress
	seen  []bool
	ended []bool
	last  time.Time
}

func newMeter(report func(algorithms.Progress), parts int) *meter {
	return &meter{
		report: report, parts: make([]algorithms.Progress, parts),
		seen: make([]bool, parts), ended: make([]bool, parts),
	}
}

// part is the index of a fold's entry: the only one where a job has no folds.
func (m *meter) part(fold int) int { return min(fold, len(m.parts)-1) }

// observer returns the Observer of the job of one fold. It asks the trainer only
// when a report is due, so that short rounds stay short.
func (m *meter) observer(fold int) func(uint64, algorithms.Trainer) error {
	if m.report == nil {
		return func(uint64, algorithms.Trainer) error { return nil }
	}
	i, next := m.part(fold), time.Time{}
	return func(_ uint64, t algorithms.Trainer) error {
		now := time.Now()
		if now.Before(next) {
			return nil
		}
		next = now.Add(interval)
		m.put(i, t.Progress(), now)
		return nil
	}
}

func (m *meter) put(i int, p algorithms.Progress, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.parts[i], m.seen[i] = p, true
	if now.Sub(m.last) >= interval {
		m.last = now
		m.report(m.sum())
	}
}

// done notes the end of one job. A job that stopped early has done all its steps.
func (m *meter) done(fold int, p algorithms.Progress) {
	p.Steps = p.Step
	m.mu.Lock()
	defer m.mu.Unlock()
	i := m.part(fold)
	m.parts[i], m.seen[i], m.ended[i] = p, true, true
}

func (m *meter) flush() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.report != nil {
		m.report(m.sum())
	}
}

// sum adds the parts up. Jobs stop early: as soon as some have ended, the others
// are expected to need as many steps as these on average.
func (m *meter) sum() algorithms.Progress {
	if len(m.parts) == 1 {
		return m.parts[0]
	}
	s, losses, expected := algorithms.Progress{Loss: -1}, 0, m.expected()
	for i, p := range m.parts {
		s.Step, s.Samples = s.Step+p.Step, s.Samples+p.Samples
		if m.ended[i] {
			s.Steps += p.Step
		} else {
			s.Steps += max(p.Step, expected)
		}
		if m.seen[i] && p.Loss >= 0 {
			s.Loss = (max(s.Loss, 0)*float64(losses) + p.Loss) / float64(losses+1)
			losses++
		}
	}
	s.MostSteps = m.most(s.Steps)
	s.Phase = fmt.Sprintf("%d of %d folds done", count(m.ended), len(m.parts))
	return s
}

// expected returns the steps that a job is expected to take: those of the ended
// ones on average, or at most.
func (m *meter) expected() (steps uint64) {
	if n := count(m.ended); n > 0 {
		for i, p := range m.parts {
			if m.ended[i] {
				steps += p.Step
			}
		}
		return steps / uint64(n)
	}
	for _, p := range m.parts {
		steps = max(steps, p.Steps)
	}
	return steps
}

func count(set []bool) (n int) {
	for _, is := range set {
		if is {
			n++
		}
	}
	return n
}

// most is the greatest number of steps of all folds together, where that many are expected
// only because no fold has ended yet and each may end earlier; else 0.
func (m *meter) most(expected uint64) uint64 {
	greatest := uint64(0)
	for _, p := range m.parts {
		greatest = max(greatest, p.MostSteps)
	}
	if greatest == 0 || count(m.ended) > 0 {
		return 0
	}
	return max(expected, greatest*uint64(len(m.parts)))
}
