// Package dispatch has the units of rounds computed by the workers of a cluster.
// A Dispatcher lives as long as one leadership: it knows which workers are alive
// and what they hold, all of it rebuilt from their beats, and it makes an
// Executor for each job. DESIGN.md walks a round through it.
package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/digests"
	"github.com/coppice-ldl/coppice/metrics"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

// Config is what a Dispatcher needs.
type Config struct {
	ID        string // of this coordinator
	Epoch     uint64 // of its leadership
	Heartbeat time.Duration
	Conn      *bus.Conn
	Subjects  protocol.Subjects
	Parts     Parts
	Metrics   *metrics.Coordinator
	Log       *slog.Logger

	// Distrusted names the workers that answered wrongly once, and why: they are
	// not used.
	Distrusted map[string]string
	// Suspect records, before it returns, that a worker's answers are wrong, and the
	// jobs that it served during this leadership. It is called again after an error
	// until ctx is done. nil: nothing is recorded.
	Suspect func(ctx context.Context, worker string, jobs []uint64, reason string) error
	// Referee computes units on the leader itself; nil: nobody does.
	Referee Referee
	// Lost, if set, reports whether a blob is on no coordinator that answers: no job fails for that.
	Lost func(digest string) bool
}

// ErrOver is wrapped by the errors of Parts that no other try would spare: another
// leads, the job has ended, or its committed state is beyond the round.
var ErrOver = errors.New("the round is over")

// Parts keeps the results of collected units; each is recorded soon after it arrives.
type Parts interface {
	// Known returns the digests of the parts recorded for a round, by unit; zero: the unit is not run.
	Known(job, round uint64) map[uint32]digests.Digest
	// Fetch brings a part here from the worker that made it and returns its bytes.
	Fetch(ctx context.Context, c *protocol.Collected) ([]byte, error)
	// Keep stores a part here that the leader computed itself and returns its digest.
	Keep(part []byte) (digest string, err error)
	// Record has a majority sync a part that is here and commits it; of is the number
	// of units in the round. The error wraps blobs.ErrMissing where it is here no more.
	Record(ctx context.Context, c *protocol.Collected, of int) error
	// Withhold commits that units of a round are not run, which had been computed for so long each.
	Withhold(ctx context.Context, job, round uint64, units []uint32, took time.Duration) error
	// Load returns the bytes of a part that is recorded.
	Load(ctx context.Context, digest string) ([]byte, error)
}

// Referee computes units on the leader: it says who is right when workers differ,
// and is the second worker where there is only one. Its methods are called one at
// a time, and return early with ctx's error when ctx is done.
type Referee interface {
	// Sum computes a unit of a summed round into dst, which is shaped and zeroed.
	Sum(ctx context.Context, c *Case, dst *round.Partial) error
	// Collect computes the bytes of a unit of a collected round.
	Collect(ctx context.Context, c *Case) ([]byte, error)
}

// Case is a unit for a Referee.
type Case struct {
	ID       uint64 // of the job
	Job      *round.Job
	Manifest *dataset.Manifest
	Round    *round.Round
	Unit     int
}

// Dispatcher gives work to workers during one leadership.
type Dispatcher struct {
	cfg     Config
	results string // the subject that workers answer on
	began   time.Time

	mu     sync.Mutex
	crew   *crew
	jobs   map[uint64]*Executor
	stops  map[uint64]stop            // of jobs that are to start again; of late only
	starts uint64                     // executors made
	served map[string]map[uint64]bool // jobs that a worker was given units of, by worker

	referee chan struct{} // holds a token while the referee computes
	giveUp  time.Duration // after so long of failures only a job fails
}

// New returns a dispatcher; Run makes it work.
func New(cfg Config) *Dispatcher {
	return &Dispatcher{
		cfg:     cfg,
		results: cfg.Subjects.Results(cfg.ID, cfg.Epoch),
		began:   time.Now(),
		crew:    newCrew(cfg.Heartbeat, cfg.Distrusted),
		jobs:    make(map[uint64]*Executor),
		stops:   make(map[uint64]stop),
		served:  make(map[string]map[uint64]bool),
		referee: make(chan struct{}, 1),
		giveUp:  failuresLimit,
	}
}

// Run listens to workers and publishes the leader's beat until ctx is done.
func (d *Dispatcher) Run(ctx context.Context) error {
	beats, err := d.cfg.Conn.Subscribe(d.cfg.Subjects.Beats(), d.onBeat)
	if err != nil {
		return fmt.Errorf("cannot listen to workers: %w", err)
	}
	defer beats.Close()
	results, err := d.cfg.Conn.SubscribeReplies(protocol.ResultsOf(d.results, "*"), d.onResult, d.onNobody)
	if err != nil {
		return fmt.Errorf("cannot listen to workers: %w", err)
	}
	defer results.Close()
	tick := time.NewTicker(d.cfg.Heartbeat / probes)
	defer tick.Stop()
	for n := 0; ; n++ {
		if n%probes == 0 {
			d.publishLead()
			d.expire(time.Now())
		}
		d.probe()
		select {
		case <-ctx.Done():
			d.publish(d.cfg.Subjects.Lead(), "", (&protocol.Lead{Epoch: d.cfg.Epoch}).Append(nil)) // it leads no more
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// probes is how often in a heartbeat workers are probed.
const probes = 2

func (d *Dispatcher) expire(now time.Time) {
	d.mu.Lock()
	if !d.cfg.Conn.Connected() {
		d.crew.excuse(now) // it is we who do not hear
	}
	gone := d.crew.expire(now)
	d.forgetStops(now)
	d.observeCrew()
	d.mu.Unlock()
	d.forgetShares(now)
	for _, id := range gone {
		d.cfg.Log.Warn("a worker does not answer any more", "worker", id)
	}
	if len(gone) > 0 {
		d.wakeAll()
	}
}

// answered notes that a worker computes what it is given, and reports whether its
// answers are trusted.
func (d *Dispatcher) answered(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.crew.revive(d.crew.get(id), time.Now())
	return d.crew.trusts(id)
}

// trusts reports whether what a worker says counts.
func (d *Dispatcher) trusts(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.crew.trusts(id)
}

// observeCrew sets the gauges of workers and shards; d.mu is held.
func (d *Dispatcher) observeCrew() {
	alive, refused, copies := 0, 0, 0
	for _, w := range d.crew.workers {
		switch {
		case w.refused != "":
			refused++
			continue
		case w.lost:
			continue
		}
		alive++
		copies += len(w.holds)
	}
	d.cfg.Metrics.Workers.WithLabelValues("alive").Set(float64(alive))
	d.cfg.Metrics.Workers.WithLabelValues("refused").Set(float64(refused))
	d.cfg.Metrics.ShardCopies.Set(float64(copies))
}

func (d *Dispatcher) wakeAll() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, x := range d.jobs {
		x.mail.wake()
	}
}

// WorkersOf lists the workers that are there and were given units of a job during this
// leadership, while an executor of it is open.
func (d *Dispatcher) WorkersOf(job uint64) (list []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.jobs[job] == nil {
		return nil
	}
	for id, jobs := range d.served {
		if jobs[job] && d.crew.get(id) != nil {
			list = append(list, id)
		}
	}
	slices.Sort(list)
	return list
}

// Workers lists the workers for people.
func (d *Dispatcher) Workers() []protocol.Worker {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []protocol.Worker
	now := time.Now()
	for _, w := range d.crew.workers {
		state := "alive"
		if w.refused != "" {
			state = "refused: " + w.refused
		} else if w.lost {
			state = "unreachable"
		}
		list = append(list, protocol.Worker{
			ID: w.id, Version: w.beat.Version, Slots: w.beat.Slots,
			Shards: len(w.holds), Metrics: w.beat.Metrics, State: state, RoundTrip: float64(w.beat.RoundTrip) / 1000,
			Host: w.beat.Host, Address: w.beat.Address, Load: w.beat.Load, Busy: w.beat.Busy,
			Units: w.units, UnitSeconds: w.unitSeconds(), MainKind: w.paces.main(), LastSeen: max(0, now.Sub(w.heard).Milliseconds()),
		})
	}
	sortWorkers(list)
	return list
}

// ExecutorOptions says how a job's units are given out.
type ExecutorOptions struct {
	// AuditPPM is the share of units, in millionths, that two workers compute and
	// whose bytes are compared before they are used.
	AuditPPM uint32
	// Watcher, where set, is told how far the units of collected rounds are.
	Watcher Watcher
	// Allowance, where set, says which units of collected rounds with groups may begin.
	Allowance Allowance
}

// Executor returns the executor of a job. Close it when the job ends or stops.
func (d *Dispatcher) Executor(id uint64, job *round.Job, m *dataset.Manifest, o ExecutorOptions) *Executor {
	x := &Executor{
		d: d, id: id, job: job, manifest: m, options: o,
		mail:  newMailbox(d.cfg.Conn.Room()),
		known: make(map[string]*acquainted),
		plans: make(map[int]*cachedPlan), resume: make(map[uint32]resume),
		unable: make(map[string]string), watch: o.Watcher,
	}
	if x.watch == nil {
		x.watch = unwatched{}
	}
	x.tree.Free = d.cfg.Conn.Room().Reuse
	x.records = newRecords(x)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.jobs[id] != nil {
		panic(fmt.Sprintf("dispatch: job %d has an executor already", id))
	}
	d.starts++
	x.start = d.starts
	d.jobs[id] = x
	return x
}
