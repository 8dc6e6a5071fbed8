// Package jobs drives jobs on the leader: it takes them off the queue, has their rounds computed through package
// dispatch, and commits their training state. A Manager lives as long as one leadership. What it had not committed is
// computed again by the next, to the same bits. DESIGN.md follows a crash through it.
package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/dispatch"
	"github.com/coppice-ldl/coppice/coordinator/replica"
	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/engine/round"
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
	// Lean, if set, is called before the rounds of a job with large messages. The function that it returns is called after
	// them.
	Lean func() (end func())
	// Journal has the events of jobs that the log does not have yet.
	Journal *Journal
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
		for _, s := range []protocol.JobState{protocol.Queued, protocol.Paused, protocol.Running, protocol.Done,
			protocol.Failed, protocol.Cancelled} {
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

// decide returns the jobs to start, in the order of submission, and the jobs with drivers that must stop: the job
// failed, was cancelled, deleted or paused, even if it was resumed since. The driver of a job that is done ends without
// that. decide counts the jobs by state in counts, and is otherwise pure.
func decide(jobs []*state.Job, drivers map[uint64]running, limit int,
	counts map[protocol.JobState]int) (start []*state.Job, stop []uint64) {
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
		if _, there := slices.BinarySearchFunc(jobs, id, func(j *state.Job, id uint64) int {
			return cmp.Compare(j.ID, id)
		}); !there {
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
	d := &driver{m: m, job: job, log: log, began: began, ran: time.Duration(ran) * time.Millisecond,
		round: job.Round, step: job.CommittedStep()}
	err := d.guarded(ctx)
	switch {
	case err == nil:
		log.Info("the job is done", "seconds", time.Since(began).Seconds())
	case ctx.Err() != nil || passing(err):
		log.Info("this coordinator does not run the job any more", "reason", err)
		if ctx.Err() == nil {
			m.stopped(d, err)
		}
		wait.For(ctx, protocol.RetryPassing)
	default:
		log.Error("the job failed", "error", err)
		now := time.Now()
		entry := protocol.JobStateEntry{Epoch: m.cfg.Epoch, Job: job.ID, State: protocol.Failed, Error: err.Error(),
			Time: now.Unix(), Millis: protocol.Millis(now), Events: m.cfg.Journal.Take(job.ID, true)}
		if _, _, err := m.cfg.Store.Propose(ctx, protocol.EncodeEntry(protocol.EntryJobState, entry)); err != nil {
			log.Warn("the job's failure could not be recorded", "error", err)
			wait.For(ctx, protocol.RetryPassing)
		}
	}
	m.cfg.Metrics.ForgetJob(job.Name)
}

// stopped notes why a job stopped that is tried again. Somebody may have paused, cancelled or deleted it: that is no
// reason.
func (m *Manager) stopped(d *driver, why error) {
	wanted := errors.Is(why, state.ErrNotRunning) || errors.Is(why, state.ErrFinal) || errors.Is(why, state.ErrDeleted)
	if m.cfg.Dispatch != nil && !wanted {
		m.cfg.Dispatch.Stopped(d.job.ID, why, time.Now())
		d.fault(dispatch.Fault{Cause: dispatch.JobStopped, Reason: why.Error()})
	}
}

// passing reports whether an error tells something of the cluster, not of the job: the job goes on from its last
// commit, here or elsewhere. A stale round or a gap comes of a commit with an unknown outcome that took effect.
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

// Wait is what a job waits for: Reason for programs, Text for people, with the command that helps. The zero value is
// nothing.
type Wait struct {
	Reason protocol.WaitReason
	Text   string
}

// Facts is what a leader knows about the things that jobs may wait for.
type Facts struct {
	Concurrent int    // jobs that run at once
	Start      string // the command that starts a worker
	Unrecorded string // why nothing can be recorded just now, or empty
	NATS       string // why the workers cannot be reached, or empty
	// Lost, if set, reports whether a blob is missing on the leader and no coordinator that answers has it.
	Lost func(digest string) bool
	// Workers tells which workers could compute tasks of a job; nil while that is not known.
	Workers func(job uint64) dispatch.Availability
}

// PendingLong is how long an entry may be on its way into the log before the leader counts as unable to record
// anything.
const PendingLong = 3 * time.Second

// foreign reports whether a job has not ended and needs a leader of another arithmetic version. It takes no place on
// this leader.
func foreign(job *state.Job) bool {
	return job.Job != nil && !job.State.Final() && job.Job.Numerics != round.Numerics
}

// Waits tells what queued and running jobs wait for, by id. all is in the order of submission. It is a pure function.
func Waits(all []*state.Job, f *Facts) map[uint64]Wait {
	waits := make(map[uint64]Wait)
	var run []string // names of the jobs that have their place
	for _, job := range all {
		if job.State == protocol.Running && !foreign(job) {
			run = append(run, job.Name)
		}
	}
	place := 0
	for _, job := range all {
		if job.State != protocol.Running && job.State != protocol.Queued {
			continue
		}
		if job.State == protocol.Queued && !foreign(job) {
			place++
		}
		if w := f.wait(job, place, run); w.Reason != "" {
			waits[job.ID] = w
		}
	}
	return waits
}

// wait tells what one job waits for. place is its place in the queue, from 1; run has the names of the running jobs.
func (f *Facts) wait(job *state.Job, place int, run []string) Wait {
	switch {
	case foreign(job):
		return Wait{protocol.WaitNumerics, fmt.Sprintf("the job needs a leader with arithmetic version %d, this leader has "+
			"%d: run that version on a coordinator, then: coppice cluster transfer ID",
			job.Job.Numerics, round.Numerics)}
	case f.Unrecorded != "":
		return Wait{protocol.WaitCommit, "the leader cannot record anything: " + f.Unrecorded +
			"; see: coppice cluster members"}
	case f.NATS != "":
		return Wait{protocol.WaitNATS, "the leader cannot reach the workers: " + f.NATS + "; see: coppice cluster members"}
	case job.State == protocol.Queued && place > max(0, f.Concurrent-len(run)):
		return Wait{protocol.WaitQueue, fmt.Sprintf("place %d in the queue: at most %d jobs run at once (coppice "+
			"coordinator --jobs), now %s",
			place-max(0, f.Concurrent-len(run)), f.Concurrent, list(run))}
	case f.Workers == nil:
		return Wait{}
	}
	return f.workersFor(job)
}

// workersFor tells whether a job waits for workers, and why the known workers do not help. The reason that is easiest
// to mend comes first. A job with usable workers may be stopped by something else.
func (f *Facts) workersFor(job *state.Job) Wait {
	a := f.Workers(job.ID)
	switch {
	case a.Stops != "":
		if text := lostBlobs(job, f.Lost); text != "" {
			return Wait{protocol.WaitBlobs, text}
		}
		return Wait{protocol.WaitRetry, "the job stopped and will be retried: " + a.Stops + "; see: coppice cluster"}
	case a.Unknown || a.Usable > 0:
		return Wait{}
	case len(a.Unable) > 0:
		return Wait{protocol.WaitMemory, fmt.Sprintf("no worker has enough memory for the job: %s; start a worker with "+
			"more: %s --memory SIZE", list(a.Unable), f.Start)}
	case len(a.Unreachable) > 0:
		return Wait{protocol.WaitUnreachable, fmt.Sprintf("no worker can be reached: %s; start a worker: %s",
			list(a.Unreachable), f.Start)}
	case len(a.Quarantined) > 0:
		return Wait{protocol.WaitQuarantined, fmt.Sprintf(
			"every worker is quarantined: %s; start another worker: %s, or see: coppice cluster", list(a.Quarantined), f.Start)}
	case len(a.Refused) > 0:
		return Wait{protocol.WaitRefused, fmt.Sprintf("every worker is refused: %s; start a worker of this version: %s",
			list(a.Refused), f.Start)}
	}
	return Wait{protocol.WaitNoWorker, protocol.NoWorker(f.Start)}
}

// lostBlobs says which blobs a job needs that are lost, and what helps; empty: none is.
func lostBlobs(job *state.Job, lost func(digest string) bool) string {
	if lost == nil {
		return ""
	}
	var names []string
	data := 0
	if m := job.Manifest; m != nil {
		for i := range m.Shards {
			if d := m.Shards[i].Digest; lost(d) {
				names, data = append(names, fmt.Sprintf("shard %d (%.12s)", i, d)), data+1
			}
		}
	}
	others := [][2]string{{"the job's training state", job.TrainerBlob}}
	if job.Job != nil {
		others = append(others, [2]string{"the job's list of folds", job.Job.Split.Assigned},
			[2]string{"the groups of the samples", job.Job.Split.Groups},
			[2]string{"the weights to start from", job.Job.Weights})
	}
	for _, o := range others {
		if o[1] != "" && lost(o[1]) {
			names = append(names, fmt.Sprintf("%s (%.12s)", o[0], o[1]))
		}
	}
	if len(names) == 0 {
		return ""
	}
	text := fmt.Sprintf("blobs of the job are on no coordinator that answers: %s; the job continues once a coordinator "+
		"has them: ", list(names))
	if data == len(names) {
		return text + fmt.Sprintf("import dataset %s again (coppice dataset import), or start a coordinator that has them",
			job.Dataset)
	}
	return text + fmt.Sprintf("start a coordinator that has them, or cancel the job: coppice job cancel %s", job.Name)
}

// maxListed bounds the names in a text.
const maxListed = 4

// list writes some names.
func list(names []string) string {
	if n := len(names); n > maxListed {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxListed], ", "), n-maxListed)
	}
	return strings.Join(names, ", ")
}

// lasting lists the reasons of a worker that still hold when its job's wait is over.
var lasting = []protocol.IdleReason{protocol.IdleMemory, protocol.IdleStalled, protocol.IdleShards}

// Explain says which jobs workers compute, and why others compute nothing. idle is by worker, all and waits are as in
// Waits, and workersOf lists the workers of a running job.
func Explain(workers []protocol.Worker, idle map[string]dispatch.Idle, all []*state.Job, waits map[uint64]Wait,
	workersOf func(job uint64) []string) {
	computes := make(map[string][]string) // the names of jobs by worker
	for _, j := range all {
		if j.State != protocol.Running {
			continue
		}
		for _, w := range workersOf(j.ID) {
			computes[w] = append(computes[w], j.Name)
		}
	}
	for i := range workers {
		w := &workers[i]
		w.Jobs = computes[w.ID]
		if why, is := idle[w.ID]; is {
			w.IdleReason, w.Idle = idleFor(why, all, waits)
		}
	}
}

// idleFor says why a worker computes nothing, for programs and for people: what the dispatcher says, what the job that
// it could work for waits for, or why no job runs. It is a pure function.
func idleFor(w dispatch.Idle, all []*state.Job, waits map[uint64]Wait) (protocol.IdleReason, string) {
	if w.Reason != "" && w.Job == 0 {
		return w.Reason, w.Text
	}
	if w.Job == 0 {
		return noneRuns(all, waits)
	}
	name := fmt.Sprintf("job %d", w.Job)
	for _, j := range all {
		if j.ID == w.Job {
			name = "job " + j.Name
		}
	}
	if wait := waits[w.Job]; wait.Reason != "" && !slices.Contains(lasting, w.Reason) {
		return protocol.IdleJobWaits, name + " is waiting: " + wait.Text
	}
	return w.Reason, name + ": " + w.Text
}

// noneRuns says why no job has tasks. The first job that has not ended and is not paused tells.
func noneRuns(all []*state.Job, waits map[uint64]Wait) (protocol.IdleReason, string) {
	var paused []string
	for _, j := range all {
		switch {
		case j.State == protocol.Paused:
			paused = append(paused, j.Name)
		case j.State.Final():
		case waits[j.ID].Reason != "":
			return protocol.IdleJobWaits, fmt.Sprintf("job %s is waiting: %s", j.Name, waits[j.ID].Text)
		default:
			return protocol.IdleNextRound, fmt.Sprintf("job %s is about to start or to end", j.Name)
		}
	}
	if len(paused) > 0 {
		return protocol.IdlePaused, fmt.Sprintf(
			"no job is running; paused jobs: %s; to resume a job: coppice job resume NAME", list(paused))
	}
	return protocol.IdleNoJob, "no job is running"
}
