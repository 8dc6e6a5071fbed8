// Package jobs drives jobs on the leader: it takes them off the queue, runs their
// rounds through dispatch and commits their state. A Manager lives as long as one
// leadership; whatever it had not committed is computed again, to the same bits,
// by the next. DESIGN.md walks a crash through it.
package jobs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/dispatch"
	"github.com/coppice-ldl/coppice/coordinator/replica"
	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/engine/schedule"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/internal/digests"
	"github.com/coppice-ldl/coppice/internal/files"
	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/metrics"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

// Log is the replicated log as those who lead see it; *store.Store documents the
// methods and their errors.
type Log interface {
	State() *state.State
	Watch() (*state.State, <-chan struct{})
	Propose(ctx context.Context, entry []byte) (index uint64, value any, err error)
}

// Blobs keeps blobs on a majority of the coordinators; *replica.Blobs documents
// the methods and their errors.
type Blobs interface {
	Put(ctx context.Context, data []byte) (digest string, err error)
	Keep(data []byte) (digest string, err error)
	Writer() (*blobs.Writer, error)
	Take(ctx context.Context, worker, digest string, size uint64) ([]byte, error)
	Spread(ctx context.Context, digest string, size uint64) error
	Get(ctx context.Context, digest string) ([]byte, error)
}

var (
	_ Log   = (*store.Store)(nil)
	_ Blobs = (*replica.Blobs)(nil)
)

// Config is what a Manager needs.
type Config struct {
	Epoch      uint64
	Concurrent int // jobs that run at once; others queue
	Store      Log
	Blobs      Blobs
	Dispatch   *dispatch.Dispatcher
	// Lean, where set, is called before the rounds of a job with large messages, and what it returns after them.
	Lean    func() (end func())
	Metrics *metrics.Coordinator
	Log     *slog.Logger
}

// Manager runs the jobs of one leadership.
type Manager struct {
	cfg Config

	drivers sync.WaitGroup
	ended   chan uint64 // ids of drivers that stopped
	running map[uint64]running
}

// running is a job's driver.
type running struct {
	stop   context.CancelFunc
	pauses uint64 // of the job when the driver began
}

// New returns a manager; Run makes it work.
func New(cfg Config) *Manager {
	return &Manager{cfg: cfg, ended: make(chan uint64), running: make(map[uint64]running)}
}

// Run starts and stops drivers as jobs come and go, until ctx is done; it returns
// once all have stopped.
func (m *Manager) Run(ctx context.Context) {
	defer m.drivers.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // before Wait
	for {
		st, changed := m.cfg.Store.Watch()
		m.act(ctx, st)
		select {
		case <-ctx.Done():
			m.drain()
			return
		case id := <-m.ended:
			m.running[id].stop()
			delete(m.running, id)
		case <-changed:
		}
	}
}

// drain takes the ends of the drivers so that they can stop.
func (m *Manager) drain() {
	for len(m.running) > 0 {
		id := <-m.ended
		m.running[id].stop()
		delete(m.running, id)
	}
}

// act does what decide says.
func (m *Manager) act(ctx context.Context, s *state.State) {
	counts := make(map[protocol.JobState]int)
	start, stop := decide(s.Jobs(), m.running, m.cfg.Concurrent, counts)
	for _, st := range []protocol.JobState{protocol.Queued, protocol.Paused, protocol.Running, protocol.Done, protocol.Failed, protocol.Cancelled} {
		m.cfg.Metrics.Jobs.WithLabelValues(string(st)).Set(float64(counts[st]))
	}
	for _, id := range stop {
		m.running[id].stop()
	}
	for _, job := range start {
		m.start(ctx, job)
	}
}

// decide returns the jobs to start, in the order of submission, and those whose
// drivers must stop because the job ended, was deleted or was paused, also where it was
// resumed since. It changes nothing but counts.
func decide(jobs []*state.Job, drivers map[uint64]running, limit int, counts map[protocol.JobState]int) (start []*state.Job, stop []uint64) {
	free := limit - len(drivers)
	for _, job := range jobs { // those that run take their places before the queue does
		if _, driven := drivers[job.ID]; !driven && job.State == protocol.Running && !foreign(job) {
			free--
		}
	}
	for _, job := range jobs {
		counts[job.State]++
		driver, driven := drivers[job.ID]
		rests := job.State.Final() || job.State == protocol.Paused
		switch {
		case driven && (rests || job.Pauses != driver.pauses):
			stop = append(stop, job.ID)
		case driven || rests || foreign(job):
		case job.State == protocol.Running:
			start = append(start, job)
		case free > 0:
			start = append(start, job)
			free--
		}
	}
	return start, append(stop, deleted(jobs, drivers)...)
}

// deleted lists the jobs that have a driver and are gone: they were cancelled and
// deleted before anybody looked.
func deleted(jobs []*state.Job, drivers map[uint64]running) (gone []uint64) {
	for id := range drivers {
		if _, there := slices.BinarySearchFunc(jobs, id, func(j *state.Job, id uint64) int { return cmp.Compare(j.ID, id) }); !there {
			gone = append(gone, id)
		}
	}
	slices.Sort(gone)
	return gone
}

func (m *Manager) start(ctx context.Context, job *state.Job) {
	ctx, cancel := context.WithCancel(ctx)
	m.running[job.ID] = running{cancel, job.Pauses}
	m.drivers.Go(func() {
		m.drive(ctx, job)
		m.ended <- job.ID
	})
}

// drive runs one job to its end, or until ctx is done.
func (m *Manager) drive(ctx context.Context, job *state.Job) {
	log := m.cfg.Log.With("job", job.ID, "name", job.Name)
	began := time.Now()
	d := &driver{m: m, job: job, log: log, began: began, ran: ranBefore(job, began)}
	err := d.guarded(ctx)
	switch {
	case err == nil:
		log.Info("the job is done", "seconds", time.Since(began).Seconds())
	case ctx.Err() != nil || passing(err):
		log.Info("this coordinator does not run the job any more", "reason", err)
		if ctx.Err() == nil {
			m.stopped(job.ID, err)
		}
		wait.For(ctx, protocol.RetryPassing)
	default:
		log.Error("the job failed", "error", err)
		if err := m.failed(ctx, job.ID, err); err != nil {
			log.Warn("the job's failure could not be recorded", "error", err)
			wait.For(ctx, protocol.RetryPassing)
		}
	}
	m.cfg.Metrics.ForgetJob(job.Name)
}

// stopped notes why a job stopped that is tried again; that it was paused, cancelled or
// deleted meanwhile is no such reason.
func (m *Manager) stopped(id uint64, why error) {
	wanted := errors.Is(why, state.ErrNotRunning) || errors.Is(why, state.ErrFinal) || errors.Is(why, state.ErrDeleted)
	if m.cfg.Dispatch != nil && !wanted {
		m.cfg.Dispatch.Stopped(id, why, time.Now())
	}
}

// passing reports whether an error says something of the cluster's state just
// now, not of the job: the job goes on from its last commit, here or elsewhere. A
// stale round or a gap comes of a commit whose outcome was unknown and that took
// effect after all.
func passing(err error) bool {
	for _, target := range []error{
		store.ErrNotLeader, store.ErrAmbiguous, store.ErrClosed, replica.ErrNoMajority,
		state.ErrStaleEpoch, state.ErrStaleRound, state.ErrGap, state.ErrFinal, state.ErrDeleted, state.ErrNotRunning,
		bus.ErrOffline, bus.ErrNoAnswer, bus.ErrNoBlob, // who has the blob is away just now
		blobs.ErrMissing,     // it waits for a blob that no coordinator has: see Waits
		errPartLost,          // it is computed again
		pipeline.ErrNumerics, // a leader of another version can
		files.ErrGone,        // this coordinator ends
	} {
		if errors.Is(err, target) {
			return true
		}
	}
	// The system says it of this machine: its disk is full or fails, its folder was deleted, it
	// is short of memory. A job has no files of its own.
	var system syscall.Errno
	return errors.As(err, &system)
}

// guarded is run with a panic of the job's trainer turned into the job's failure:
// else one bad job would end every coordinator that comes to lead.
func (d *driver) guarded(ctx context.Context) (err error) {
	defer func() {
		if stack := engine.PanicStack(err); stack != "" {
			d.log.Error("a job's algorithm panicked", "reason", err, "stack", stack)
		}
	}()
	defer engine.Guard(&err, "the algorithm")
	return d.run(ctx)
}

func (m *Manager) failed(ctx context.Context, id uint64, cause error) error {
	now := time.Now()
	entry := protocol.JobStateEntry{Epoch: m.cfg.Epoch, Job: id, State: protocol.Failed, Error: cause.Error(), Time: now.Unix(), Millis: protocol.Millis(now)}
	_, _, err := m.cfg.Store.Propose(ctx, protocol.EncodeEntry(protocol.EntryJobState, entry))
	return err
}

// Results implements dispatch.Results on the log and the blob folders.
type Results struct {
	Epoch uint64
	Store Log
	Blobs Blobs

	mu   sync.Mutex
	lost digests.Set // recorded results that no coordinator has any longer; mu guards it
}

// errPartLost says that no coordinator has a recorded result any longer: its job starts again from its last commit and
// computes the task once more, to the same bytes.
var errPartLost = errors.New("no coordinator has the recorded result of a task any more; the task is computed again")

// setLost remembers whether a result is lost.
func (r *Results) setLost(text string, lost bool) {
	d, ok := digests.Parse(text)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !lost:
		delete(r.lost, d)
	case ok:
		if r.lost == nil {
			r.lost = make(digests.Set)
		}
		r.lost[d] = struct{}{}
	}
}

// Known implements dispatch.Results.
func (r *Results) Known(job, round uint64) (known []schedule.Known) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if j := r.Store.State().Job(job); j != nil {
		for p := range j.PartsFrom(round+1, 0) {
			if !r.lost.Contains(p.Digest) {
				known = append(known, schedule.Known{Task: p.Unit, Digest: p.Digest, Took: time.Duration(p.Compute)})
			}
		}
	}
	return known
}

// Fetch implements dispatch.Results.
func (r *Results) Fetch(ctx context.Context, c *protocol.Collected) ([]byte, error) {
	return r.Blobs.Take(ctx, c.Worker, c.Digest, c.Bytes)
}

// Keep implements dispatch.Results.
func (r *Results) Keep(result []byte) (digest string, err error) { return r.Blobs.Keep(result) }

// Record implements dispatch.Results.
func (r *Results) Record(ctx context.Context, c *protocol.Collected, of int) error {
	if j := r.Store.State().Job(c.Job); j != nil && j.Round > c.Round { // copies are not needed
		return fmt.Errorf("%w: %w", dispatch.ErrOver, state.ErrStaleRound)
	}
	if err := r.Blobs.Spread(ctx, c.Digest, c.Bytes); err != nil {
		return err
	}
	r.setLost(c.Digest, false)
	entry := protocol.CollectedEntry{Epoch: r.Epoch, Job: c.Job, Round: c.Round + 1, Unit: c.Unit, Of: uint32(of), Digest: c.Digest, Bytes: c.Bytes, Compute: c.Compute}
	return r.propose(ctx, protocol.EntryCollected, entry)
}

// Withhold implements dispatch.Results.
func (r *Results) Withhold(ctx context.Context, job, round uint64, tasks []uint32, took time.Duration) error {
	for some := range slices.Chunk(tasks, protocol.MaxWithheld) {
		entry := protocol.WithholdEntry{Epoch: r.Epoch, Job: job, Round: round + 1, Units: some, Compute: uint64(took)}
		if err := r.propose(ctx, protocol.EntryWithhold, entry); err != nil {
			return err
		}
	}
	return nil
}

// propose commits an entry. What the state machine refuses, it would refuse again.
func (r *Results) propose(ctx context.Context, kind protocol.EntryKind, entry any) error {
	_, _, err := r.Store.Propose(ctx, protocol.EncodeEntry(kind, entry))
	for _, target := range []error{state.ErrStaleEpoch, state.ErrStaleRound, state.ErrFinal, state.ErrDeleted, state.ErrNotRunning} {
		if errors.Is(err, target) {
			return fmt.Errorf("%w: %w", dispatch.ErrOver, err)
		}
	}
	return err
}

// Load implements dispatch.Results.
func (r *Results) Load(ctx context.Context, digest string) ([]byte, error) {
	b, err := r.Blobs.Get(ctx, digest)
	if errors.Is(err, blobs.ErrMissing) {
		r.setLost(digest, true)
		err = fmt.Errorf("%w: %w", errPartLost, err)
	}
	return b, err
}

// presentable returns progress for display. JSON has no word for a loss that is not
// finite: it counts as not known.
func presentable(p round.Progress) round.Progress {
	if p.Loss-p.Loss != 0 {
		p.Loss = -1
	}
	if p.Validation-p.Validation != 0 {
		p.Validation, p.ValidatedAt = 0, 0
	}
	if p.BestLoss-p.BestLoss != 0 {
		p.BestLoss = 0
	}
	return p
}

// progressJSON encodes progress for display.
func progressJSON(p round.Progress) []byte {
	b, err := json.Marshal(presentable(p))
	if err != nil {
		panic(fmt.Sprintf("jobs: progress does not marshal: %v", err))
	}
	return b
}
