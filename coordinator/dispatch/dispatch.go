// Package dispatch has the units of rounds computed by the workers of a cluster.
// A Dispatcher lives as long as one leadership: it knows which workers are alive
// and what they hold, all of it rebuilt from their beats, and it makes an
// Executor for each job. DESIGN.md walks a round through it.
package dispatch

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/bus"
	"github.com/coppice-ldl/coppice/metrics"
	"github.com/coppice-ldl/coppice/protocol"
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
}

// Parts keeps the results of collected units; each is recorded as it arrives.
type Parts interface {
	// Known returns the digests of the parts recorded for a round, by unit.
	Known(job, round uint64) map[uint32]string
	// Record fetches a part from the worker that made it, has a majority sync it
	// and commits it; of is the number of units in the round.
	Record(ctx context.Context, c *protocol.Collected, of int) error
	// Load returns the bytes of a recorded part.
	Load(ctx context.Context, digest string) ([]byte, error)
}

// Dispatcher gives work to workers during one leadership.
type Dispatcher struct {
	cfg     Config
	results string // the subject that workers answer on

	mu   sync.Mutex
	crew *crew
	jobs map[uint64]*Executor
}

// New returns a dispatcher; Run makes it work.
func New(cfg Config) *Dispatcher {
	return &Dispatcher{
		cfg:     cfg,
		results: cfg.Subjects.Results(cfg.ID, cfg.Epoch),
		crew:    newCrew(cfg.Heartbeat),
		jobs:    make(map[uint64]*Executor),
	}
}

// Run listens to workers and publishes the leader's beat until ctx is done.
func (d *Dispatcher) Run(ctx context.Context) error {
	beats, err := d.cfg.Conn.Subscribe(d.cfg.Subjects.Beats(), d.onBeat)
	if err != nil {
		return fmt.Errorf("dispatch: %w", err)
	}
	defer beats.Close()
	results, err := d.cfg.Conn.Subscribe(d.results, d.onResult)
	if err != nil {
		return fmt.Errorf("dispatch: %w", err)
	}
	defer results.Close()
	tick := time.NewTicker(d.cfg.Heartbeat)
	defer tick.Stop()
	for {
		d.publishLead()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			d.expire(time.Now())
		}
	}
}

func (d *Dispatcher) publishLead() {
	lead := protocol.Lead{Epoch: d.cfg.Epoch, Coordinator: d.cfg.ID}
	d.mu.Lock()
	for id, w := range d.crew.workers {
		if w.refused != "" {
			if lead.Refused == nil {
				lead.Refused = make(map[string]string)
			}
			lead.Refused[id] = w.refused
		}
	}
	d.mu.Unlock()
	d.send(d.cfg.Subjects.Lead(), lead.Append(nil))
}

// send publishes a message. A failure needs no care here: what is lost is sent
// again when a worker asks, or when its units are overdue.
func (d *Dispatcher) send(subject string, msg []byte) {
	if err := d.cfg.Conn.Send(subject, d.results, msg); err != nil {
		d.cfg.Log.Debug("a message was not sent", "subject", subject, "error", err)
	}
}

func (d *Dispatcher) onBeat(m bus.Message) {
	var b protocol.Beat
	if err := b.Decode(m.Data); err != nil {
		d.cfg.Metrics.PartsDropped.WithLabelValues(metrics.DropMisshapen).Inc()
		return
	}
	d.mu.Lock()
	changed, joined := d.crew.hear(&b, time.Now())
	refused := ""
	if w := d.crew.workers[b.Worker]; w != nil {
		refused = w.refused
	}
	d.observeCrew()
	d.mu.Unlock()
	switch {
	case joined && refused != "":
		d.cfg.Log.Warn("a worker is refused", "worker", b.Worker, "reason", refused)
	case joined:
		d.cfg.Log.Info("a worker joined", "worker", b.Worker, "slots", b.Slots)
	case b.Leaving && changed:
		d.cfg.Log.Info("a worker left", "worker", b.Worker)
	}
	if changed {
		d.wakeAll()
	}
}

func (d *Dispatcher) expire(now time.Time) {
	d.mu.Lock()
	gone := d.crew.expire(now)
	d.observeCrew()
	d.mu.Unlock()
	for _, id := range gone {
		d.cfg.Log.Warn("a worker went silent", "worker", id)
	}
	if len(gone) > 0 {
		d.wakeAll()
	}
}

// answered notes that a worker computes what it is given.
func (d *Dispatcher) answered(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.crew.revive(d.crew.get(id))
}

// observeCrew sets the gauges of workers and shards; d.mu is held.
func (d *Dispatcher) observeCrew() {
	alive, refused, copies := 0, 0, 0
	for _, w := range d.crew.workers {
		if w.refused != "" {
			refused++
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

// onResult hands a worker's message to the job that it is for.
func (d *Dispatcher) onResult(m bus.Message) {
	stamp, err := protocol.PeekStamp(m.Data)
	if err != nil {
		d.cfg.Metrics.PartsDropped.WithLabelValues(metrics.DropMisshapen).Inc()
		return
	}
	if stamp.Epoch != d.cfg.Epoch {
		d.cfg.Metrics.PartsDropped.WithLabelValues(metrics.DropStale).Inc()
		return
	}
	d.mu.Lock()
	x := d.jobs[stamp.Job]
	d.mu.Unlock()
	if x == nil {
		d.cfg.Metrics.PartsDropped.WithLabelValues(metrics.DropStale).Inc()
		return
	}
	x.mail.put(m.Data)
}

// InFlight returns how many collected units of a job workers compute just now.
func (d *Dispatcher) InFlight(job uint64) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if x := d.jobs[job]; x != nil {
		return int(x.inFlight.Load())
	}
	return 0
}

// Workers lists the workers for people.
func (d *Dispatcher) Workers() []protocol.Worker {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []protocol.Worker
	for _, w := range d.crew.workers {
		state := "alive"
		if w.refused != "" {
			state = "refused: " + w.refused
		}
		list = append(list, protocol.Worker{
			ID: w.id, Version: w.beat.Version, Slots: w.beat.Slots,
			Shards: len(w.holds), Metrics: w.beat.Metrics, State: state,
		})
	}
	sortWorkers(list)
	return list
}

// Executor returns the executor of a job. Close it when the job ends or stops.
func (d *Dispatcher) Executor(id uint64, job *algorithms.Job, m *dataset.Manifest) *Executor {
	x := &Executor{
		d: d, id: id, job: job, manifest: m,
		mail:  newMailbox(),
		known: make(map[string]*acquainted),
		plans: make(map[int]*cachedPlan), resume: make(map[uint32][]byte),
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.jobs[id] != nil {
		panic(fmt.Sprintf("dispatch: job %d has an executor already", id))
	}
	d.jobs[id] = x
	return x
}
