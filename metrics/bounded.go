package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Other is the label value that what is beyond a bound shares.
const Other = "other"

// The bounds of labels whose values come from elsewhere.
const (
	maxKinds   = 16  // of tasks, in one process
	maxWorkers = 256 // at one leader
)

// workerKept is for how long the series of a worker that is gone stay: some scrapes,
// so that its last work is seen.
const workerKept = 10 * time.Minute

// Kinds is a histogram of seconds for each kind of task. It has at most 16 kinds, those
// that come first; the rest is counted as Other.
type Kinds struct {
	*prometheus.HistogramVec

	mu   sync.RWMutex
	seen map[string]prometheus.Observer
}

func (s *set) kinds(name, help string) *Kinds {
	return &Kinds{HistogramVec: s.histograms(name, help, "kind", longDurations),
		seen: make(map[string]prometheus.Observer)}
}

// Observe counts a task of a kind ("step", "tree"; empty: Other) that took so many
// seconds.
func (k *Kinds) Observe(kind string, seconds float64) { k.of(kind).Observe(seconds) }

func (k *Kinds) of(kind string) prometheus.Observer {
	k.mu.RLock()
	o := k.seen[kind]
	k.mu.RUnlock()
	if o != nil {
		return o
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if kind == "" || len(k.seen) >= maxKinds {
		return k.WithLabelValues(Other)
	}
	o = k.WithLabelValues(kind)
	k.seen[kind] = o
	return o
}

// Shares counts the work of each worker, as the leader sees it. It has series of at
// most 256 workers, those that come first; the rest is counted as Other.
type Shares struct {
	tasks, seconds *prometheus.CounterVec

	mu      sync.Mutex
	workers map[string]*share
}

// share has the series of a worker.
type share struct {
	tasks, seconds prometheus.Counter
	last           time.Time // when the worker was counted last
}

func (s *set) shares() *Shares {
	return &Shares{
		tasks: s.counters("leader_worker_tasks_total",
			"Task results that this leader received from a worker, needed or not. At most 256 workers have a series; all "+
				"others count as worker=\"other\".", "worker"),
		seconds: s.counters("leader_worker_task_seconds_total",
			"Computing time of the tasks of leader_worker_tasks_total, as reported by the worker.", "worker"),
		workers: make(map[string]*share),
	}
}

// Add counts tasks of a worker, and the time that they took in all, which is not
// negative.
func (s *Shares) Add(worker string, units int, took time.Duration, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.workers[worker]
	if x == nil {
		if len(s.workers) >= maxWorkers {
			worker = Other
		}
		x = &share{tasks: s.tasks.WithLabelValues(worker), seconds: s.seconds.WithLabelValues(worker)}
		if worker != Other {
			s.workers[worker] = x
		}
	}
	x.last = now
	x.tasks.Add(float64(units))
	x.seconds.Add(took.Seconds())
}

// Expire drops the series of workers that are gone, if nothing was counted about them
// for ten minutes.
func (s *Shares) Expire(here func(worker string) bool, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for worker, x := range s.workers {
		if now.Sub(x.last) > workerKept && !here(worker) {
			s.tasks.DeleteLabelValues(worker)
			s.seconds.DeleteLabelValues(worker)
			delete(s.workers, worker)
		}
	}
}

// Reset drops all series: the leadership is over.
func (s *Shares) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tasks.Reset()
	s.seconds.Reset()
	clear(s.workers)
}
