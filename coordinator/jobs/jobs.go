// Package jobs drives jobs on the leader: it takes them off the queue, has their rounds computed through package dispatch, and
// commits their training state. A Manager lives as long as one leadership. What it had not committed is computed again by the
// next, to the same bits. DESIGN.md follows a crash through it.
package jobs

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/dispatch"
	"github.com/coppice-ldl/coppice/coordinator/replica"
	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/internal/files"
	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/metrics"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

// Log is the replicated log as a leader sees it. *store.Store documents the methods and their errors.
type Log interface {
	State() *state.State
	Watch() (*state.State, <-chan struct{})
	Propose(ctx context.Context, entry []byte) (index uint64, value any, err error)
}

// Blobs keeps blobs on a quorum of the coordinators. *replica.Blobs documents the methods and their errors.
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
	// Lean, if set, is called before the rounds of a job with large messages. The function that it returns is called after them.
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

// Run starts and stops drivers as jobs come and go, until ctx is done. It returns once all have stopped.
func (m *Manager) Run(ctx context.Context) {
	defer m.drivers.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // before Wait
	end := func(id uint64) {
		m.running[id].stop()
		delete(m.running, id)
	}
	for {
		st, changed := m.cfg.Store.Watch()
		counts := make(map[protocol.JobState]int)
		start, stop := decide(st.Jobs(), m.running, m.cfg.Concurrent, counts)
		for _, s := range []protocol.JobState{protocol.Queued, protocol.Paused, protocol.Running, protocol.Done, protocol.Failed, protocol.Cancelled} {
			m.cfg.Metrics.Jobs.WithLabelValues(string(s)).Set(float64(counts[s]))
		}
		for _, id := range stop {
			m.running[id].stop()
		}
		for _, job := range start {
			ctx, cancel := context.WithCancel(ctx)
			m.running[job.ID] = running{cancel, job.Pauses}
			m.drivers.Go(func() {
				m.drive(ctx, job)
				m.ended <- job.ID
			})
		}
		select {
		case <-ctx.Done():
			for len(m.running) > 0 { // the drivers' ends must be taken, or they do not stop
				end(<-m.ended)
			}
			return
		case id := <-m.ended:
			end(id)
		case <-changed:
		}
	}
}

// decide returns the jobs to start, in the order of submission, and the jobs with drivers that must stop: the job failed, was
// cancelled, deleted or paused, even if it was resumed since. The driver of a job that is done ends without that. decide
// counts the jobs by state in counts, and is otherwise pure.
func decide(jobs []*state.Job, drivers map[uint64]running, limit int, counts map[protocol.JobState]int) (start []*state.Job, stop []uint64) {
	free := limit - len(drivers)
	for _, job := range jobs { // running jobs take their places before the queue does
		if _, driven := drivers[job.ID]; !driven && job.State == protocol.Running && !foreign(job) {
			free--
		}
	}
	for _, job := range jobs {
		counts[job.State]++
		driver, driven := drivers[job.ID]
		rests := job.State.Final() || job.State == protocol.Paused
		switch {
		case driven && job.State == protocol.Done:
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
	from := len(stop)
	for id := range drivers { // a job may be cancelled and deleted before anybody looks
		if _, there := slices.BinarySearchFunc(jobs, id, func(j *state.Job, id uint64) int { return cmp.Compare(j.ID, id) }); !there {
			stop = append(stop, id)
		}
	}
	slices.Sort(stop[from:])
	return start, stop
}

// drive runs one job to its end, or until ctx is done.
func (m *Manager) drive(ctx context.Context, job *state.Job) {
	log := m.cfg.Log.With("job", job.ID, "name", job.Name)
	began := time.Now()
	ran := job.Ran                                      // milliseconds
	if job.State == protocol.Running && job.Since > 0 { // another leader ran it: the clocks of both count
		ran += max(0, began.UnixMilli()-job.Since)
	}
	d := &driver{m: m, job: job, log: log, began: began, ran: time.Duration(ran) * time.Millisecond}
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
		now := time.Now()
		entry := protocol.JobStateEntry{Epoch: m.cfg.Epoch, Job: job.ID, State: protocol.Failed, Error: err.Error(), Time: now.Unix(), Millis: protocol.Millis(now)}
		if _, _, err := m.cfg.Store.Propose(ctx, protocol.EncodeEntry(protocol.EntryJobState, entry)); err != nil {
			log.Warn("the job's failure could not be recorded", "error", err)
			wait.For(ctx, protocol.RetryPassing)
		}
	}
	m.cfg.Metrics.ForgetJob(job.Name)
}

// stopped notes why a job stopped that is tried again. Somebody may have paused, cancelled or deleted it: that is no reason.
func (m *Manager) stopped(id uint64, why error) {
	wanted := errors.Is(why, state.ErrNotRunning) || errors.Is(why, state.ErrFinal) || errors.Is(why, state.ErrDeleted)
	if m.cfg.Dispatch != nil && !wanted {
		m.cfg.Dispatch.Stopped(id, why, time.Now())
	}
}

// passing reports whether an error tells something of the cluster, not of the job: the job goes on from its last commit, here
// or elsewhere. A stale round or a gap comes of a commit with an unknown outcome that took effect.
func passing(err error) bool {
	for _, target := range []error{
		store.ErrNotLeader, store.ErrAmbiguous, store.ErrClosed, replica.ErrNoMajority,
		state.ErrStaleEpoch, state.ErrStaleRound, state.ErrGap, state.ErrFinal, state.ErrDeleted, state.ErrNotRunning,
		bus.ErrOffline, bus.ErrNoAnswer, bus.ErrNoBlob, // who has the blob is away just now
		blobs.ErrMissing,     // it waits for a blob that no coordinator has: see Waits
		errResultLost,        // it is computed again
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
