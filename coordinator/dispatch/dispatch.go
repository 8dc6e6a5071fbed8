// Package dispatch has the tasks of rounds computed by the workers of a cluster. It decides nothing: package
// engine/schedule says what to send, to fetch and to record, and this package does it.
//
// A Dispatcher lives as long as one leadership. What it knows of workers comes from their heartbeats. It makes an
// Executor for each job. DESIGN.md follows a round through it.
package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/engine/schedule"
	"github.com/coppice-ldl/coppice/internal/wait"
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
	Results   Results
	Metrics   *metrics.Coordinator
	Log       *slog.Logger

	// Quarantined names the workers that the log does not trust, and says why.
	Quarantined map[string]string
	// Quarantine records, before it returns, that a worker's results are wrong, and the jobs that it had tasks of during
	// this leadership. After an error it is called again until ctx is done. nil: nothing is recorded.
	Quarantine func(ctx context.Context, worker string, jobs []uint64, reason string) error
	// Verifier computes tasks on the leader itself; nil: nobody does.
	Verifier Verifier
	// Lost, if set, reports whether a blob is on no coordinator that answers: no job fails for that.
	Lost func(digest string) bool
	// Disconnect, if set, closes the connection of a worker to NATS.
	Disconnect func(worker string)
	// Revoked, if set, lists the serial numbers of revoked certificates, in order.
	Revoked func() []string
}

// ErrOver is wrapped by the errors of Results that no other try would spare: another coordinator leads, the job has
// ended, or its committed state is beyond the round.
var ErrOver = errors.New("the round is over")

// Results keeps the results of gather rounds, on the leader's disk and in the log.
type Results interface {
	// Known returns the results that are recorded for a round.
	Known(job, round uint64) []schedule.Known
	// Fetch brings a result here from the worker that has it, and returns its bytes.
	Fetch(ctx context.Context, c *protocol.Result) ([]byte, error)
	// Keep stores a result here that the leader computed, and returns its digest.
	Keep(result []byte) (digest string, err error)
	// Record has a quorum sync a result that is here, and commits it; of is the number of tasks in the round, and failed
	// is true if the task, a run of an experiment, failed. The error wraps blobs.ErrMissing if the result is here no
	// longer.
	Record(ctx context.Context, c *protocol.Result, of int, failed bool) error
	// Withhold commits that tasks of a round are not run, after took of computing each.
	Withhold(ctx context.Context, job, round uint64, tasks []uint32, took time.Duration) error
	// Load returns the bytes of a result that is recorded.
	Load(ctx context.Context, digest string) ([]byte, error)
}

// Verifier computes tasks on the leader: it decides if workers' results differ, and is the second computer if there is
// one worker. Its methods are called one at a time, and return early with ctx's error if ctx is done.
type Verifier interface {
	// Sum computes a task of a reduce round into dst, which is shaped and zeroed.
	Reduce(ctx context.Context, c *Case, dst *round.Partial) error
	// Gather computes the result of a task of a gather round.
	Gather(ctx context.Context, c *Case) ([]byte, error)
}

// Case is a task for a Verifier.
type Case struct {
	ID       uint64 // of the job
	Job      *round.Job
	Manifest *dataset.Manifest
	Round    *round.Round
	Task     int
}

// giveUp is how long a task may do nothing but fail before its job fails.
const giveUp = 10 * time.Minute

// Dispatcher gives work to workers during one leadership.
type Dispatcher struct {
	cfg     Config
	results string // the subject that workers answer on
	prefix  string // of the subject of one worker, before its name
	began   time.Time
	lookAt  time.Duration // time between two Tick events

	mu      sync.Mutex // guards all that follows, and what schedule.Job.Step and schedule.Job.View see
	workers *schedule.Workers
	said    map[string]*said // what workers say of themselves, by name
	left    speeds           // of workers that left
	jobs    map[uint64]*Executor
	budgets map[string]*schedule.Budgets // by ExecutorOptions.Budget.Key
	stops   map[uint64]stop              // of jobs that are to start again
	starts  uint64                       // executors made
	// when it was logged that a worker names another, by worker; at most schedule.MaxWorkers
	warned map[string]time.Time

	verifies chan struct{} // has a token while the verifier computes
	failed   chan error    // has the first error of guarded

	revoked []string // as the workers were told; only Run uses it
}

// maxTick bounds the time between two Tick events.
const maxTick = 50 * time.Millisecond

// New returns a dispatcher; Run makes it work.
func New(cfg Config) *Dispatcher {
	results := cfg.Subjects.Results(cfg.ID, cfg.Epoch)
	return &Dispatcher{
		cfg: cfg, results: results, prefix: protocol.ResultsOf(results, ""), began: time.Now(),
		lookAt:  min(cfg.Heartbeat/2, maxTick),
		workers: schedule.NewWorkers(limits(cfg.Heartbeat), cfg.Quarantined),
		said:    make(map[string]*said), left: make(speeds),
		jobs: make(map[uint64]*Executor), budgets: make(map[string]*schedule.Budgets),
		stops: make(map[uint64]stop), warned: make(map[string]time.Time), verifies: make(chan struct{}, 1),
		failed: make(chan error, 1),
	}
}

// limits returns the limits of decisions by the heartbeat.
func limits(h time.Duration) schedule.Limits {
	return schedule.Limits{
		Heartbeat: h, Dead: protocol.DeadBeats * h, Slow: protocol.SlowBeats * h, Lost: protocol.LostBeats * h,
		Remind: protocol.RemindBeats * h, Hold: protocol.HoldBeats * h, Avoided: protocol.StalledBeats * h,
		GiveUp: giveUp, Short: recordEvery, Ahead: 1,
	}
}

// probes is how often in a heartbeat workers are probed.
const probes = 2

// guarded returns handle with a panic turned into the error of Run. What handle does with the
// state of d, it does in locked.
func guarded[M any](d *Dispatcher, handle func(M)) func(M) {
	return func(m M) {
		var err error
		func() {
			defer engine.Guard(&err, "the handling of a worker's message")
			handle(m)
		}()
		if err != nil {
			select {
			case d.failed <- err:
			default:
			}
		}
	}
}

// locked calls f with mu held, which is free afterwards even if f panics.
func locked(mu *sync.Mutex, f func()) {
	mu.Lock()
	defer mu.Unlock()
	f()
}

// Run listens to workers and publishes the leader's heartbeat until ctx is done. If the dispatcher panics, Run returns
// an engine.Panic, and the dispatcher must not be used any longer.
func (d *Dispatcher) Run(ctx context.Context) (err error) {
	defer engine.Guard(&err, "sending tasks to workers")
	beats, err := d.cfg.Conn.Subscribe(d.cfg.Subjects.Heartbeats("*"), guarded(d, d.onBeat))
	if err != nil {
		return fmt.Errorf("cannot listen to workers: %w", err)
	}
	defer beats.Close()
	results, err := d.cfg.Conn.SubscribeReplies(protocol.ResultsOf(d.results, "*"), guarded(d, d.onResult),
		guarded(d, d.onNobody))
	if err != nil {
		return fmt.Errorf("cannot listen to workers: %w", err)
	}
	defer results.Close()
	tick := time.NewTicker(d.cfg.Heartbeat / probes)
	defer tick.Stop()
	for n := 0; ; n++ {
		if n%probes == 0 {
			d.publishLead(n/probes%revokedEvery == 0)
			d.expire(time.Now())
		}
		d.probe()
		select {
		case <-ctx.Done():
			d.publish(d.cfg.Subjects.Lead(), "", (&protocol.Lead{Epoch: d.cfg.Epoch}).Append(nil)) // it leads no longer
			return ctx.Err()
		case err := <-d.failed:
			return err
		case <-tick.C:
		}
	}
}

// revokedEvery is the number of announcements after which the revoked certificates are published again. So
// a worker that has just joined, or has lost an announcement, hears of them.
const revokedEvery = 8

// publishLead publishes who leads, and which workers are refused. It also publishes the revoked
// certificates, if they have changed or again is true.
func (d *Dispatcher) publishLead(again bool) {
	lead := protocol.Lead{Epoch: d.cfg.Epoch, Coordinator: d.cfg.ID}
	if d.cfg.Revoked != nil {
		if list := d.cfg.Revoked(); again || !slices.Equal(list, d.revoked) {
			lead.Revoked, d.revoked = list, list
		}
	}
	locked(&d.mu, func() {
		now := time.Now()
		for _, w := range d.workers.View(now) {
			if both := d.said[w.Name].twinsAt(now); both != "" {
				if lead.Twins == nil {
					lead.Twins = make(map[string]string)
				}
				lead.Twins[w.Name] = both
			}
			if w.Refused != "" {
				if lead.Refused == nil {
					lead.Refused = make(map[string]string)
				}
				lead.Refused[w.Name] = w.Refused
			}
		}
	})
	d.publish(d.cfg.Subjects.Lead(), "", lead.Append(nil))
}

// probe sends every usable worker a message that it does not answer. If nobody listens to its subject, the NATS server
// says so at once. While there is no job, silence tells soon enough.
func (d *Dispatcher) probe() {
	var to []address
	locked(&d.mu, func() {
		if len(d.jobs) == 0 {
			return
		}
		for name := range d.said {
			if d.workers.Get(name) != nil {
				to = append(to, d.addressOf(name))
			}
		}
	})
	msg := (&protocol.Probe{Epoch: d.cfg.Epoch}).Append(nil)
	for i := range to {
		d.send(&to[i], msg)
	}
}

// expire forgets the workers that were silent for too long.
func (d *Dispatcher) expire(now time.Time) {
	var gone []string
	locked(&d.mu, func() {
		if !d.cfg.Conn.Connected() {
			d.workers.HeardAll(now) // the leader hears nobody
		}
		gone = d.workers.Expire(now)
		for _, name := range gone {
			d.left.keep(name, d.said[name], now)
			delete(d.said, name)
		}
		maps.DeleteFunc(d.stops, func(_ uint64, s stop) bool { return now.Sub(s.at) > soon }) // too old to be told
		d.workersChanged()
	})
	d.cfg.Metrics.Shares.Expire(func(name string) bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.workers.Has(name)
	}, now)
	for _, name := range gone {
		d.cfg.Log.Warn("a worker does not answer any more", "worker", name)
	}
	if len(gone) > 0 {
		d.wake(nil)
	}
}

// onBeat takes in a worker's heartbeat.
func (d *Dispatcher) onBeat(m bus.Message) {
	var b protocol.Heartbeat
	sender := protocol.Sender(m.Subject)
	if err := protocol.Read(&b, m.Data); err != nil || b.Worker == "" {
		d.cfg.malformed(sender, err)
		return
	}
	if sender != b.Worker {
		d.dropForeign(sender, b.Worker)
		return
	}
	var changed, joined bool
	refused := ""
	locked(&d.mu, func() {
		if changed, joined = d.hear(&b, time.Now()); joined {
			refused = d.workers.Refused(b.Worker)
		}
		if changed { // otherwise each heartbeat would cost a time in proportion to the number of workers
			d.workersChanged()
		}
	})
	switch {
	case joined && refused != "":
		d.cfg.Log.Warn("a worker is refused", "worker", b.Worker, "reason", refused)
	case joined:
		d.cfg.Log.Info("a worker joined", "worker", b.Worker, "slots", b.Slots)
	case b.Leaving && changed:
		d.cfg.Log.Info("a worker left", "worker", b.Worker)
	}
	if changed {
		d.wake(nil)
	}
}

// malformed counts a message that is dropped because of err. If the decoder panicked, the connection of the sender is
// closed.
func (cfg *Config) malformed(sender string, err error) {
	cfg.Metrics.ResultsDropped.WithLabelValues(metrics.DropMisshapen).Inc()
	if !errors.Is(err, protocol.ErrPanic) {
		return
	}
	cfg.Log.Error("a message of a worker is dropped, and its connection is closed", "worker", protocol.Brief(sender),
		"error", err)
	if cfg.Disconnect != nil {
		cfg.Disconnect(sender)
	}
}

// warnEvery is the least time between two warnings about a worker that names another in its messages.
const warnEvery = time.Minute

// dropForeign counts a message that names another worker than its subject. It warns at most once a minute for each
// sender.
func (d *Dispatcher) dropForeign(sender, named string) {
	now := time.Now()
	d.mu.Lock()
	at, known := d.warned[sender]
	if !known && len(d.warned) >= schedule.MaxWorkers {
		maps.DeleteFunc(d.warned, func(_ string, at time.Time) bool { return now.Sub(at) >= warnEvery })
	}
	warns := known && now.Sub(at) >= warnEvery || !known && len(d.warned) < schedule.MaxWorkers
	if warns {
		d.warned[sender] = now
	}
	d.mu.Unlock()
	if warns {
		d.cfg.Log.Warn("messages of a worker are dropped, because they name another worker", "worker", protocol.Brief(sender),
			"names", protocol.Brief(named))
	}
	d.cfg.Metrics.ResultsDropped.WithLabelValues(metrics.DropSender).Inc()
}

// onNobody takes a worker out of use that nobody listens for. If it only reconnects, its next heartbeat brings it back.
func (d *Dispatcher) onNobody(reply string) {
	name := strings.TrimPrefix(reply, d.prefix)
	lost := false
	locked(&d.mu, func() {
		lost = d.workers.Unreachable(name)
		d.workersChanged()
	})
	if lost {
		d.cfg.Log.Warn("the connection to a worker is lost", "worker", name)
		d.wake(nil)
	}
}

// onResult hands a worker's message to the job that it is for.
func (d *Dispatcher) onResult(m bus.Message) {
	stamp, worker, err := protocol.PeekStamp(m.Data)
	if err != nil {
		d.cfg.Metrics.ResultsDropped.WithLabelValues(metrics.DropMisshapen).Inc()
		return
	}
	sender := protocol.Sender(m.Subject)
	if sender != string(worker) {
		d.dropForeign(sender, string(worker))
		return
	}
	if stamp.Epoch != d.cfg.Epoch {
		d.cfg.Metrics.ResultsDropped.WithLabelValues(metrics.DropStale).Inc()
		return
	}
	var x *Executor
	locked(&d.mu, func() {
		x = d.jobs[stamp.Job]
		d.workers.Heard(sender, time.Now())
	})
	if x == nil {
		d.cfg.Metrics.ResultsDropped.WithLabelValues(metrics.DropStale).Inc()
	} else if !x.mail.put(m.Data) {
		d.cfg.Metrics.ResultsDropped.WithLabelValues(metrics.DropFull).Inc()
	}
}

// wake wakes the executors of the jobs for which which is true. Nil means all.
func (d *Dispatcher) wake(which func(*Executor) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, x := range d.jobs {
		if which == nil || which(x) {
			x.mail.wake()
		}
	}
}

// quarantined has it recorded that a worker's results are wrong, and returns once it is: nothing that came of its task
// is folded before.
func (d *Dispatcher) quarantined(ctx context.Context, worker string, jobs []uint64, reason string) error {
	d.mu.Lock()
	d.workersChanged()
	d.mu.Unlock()
	d.cfg.Log.Error("a worker returned a wrong result and is quarantined", "worker", worker, "jobs", jobs,
		"reason", reason)
	d.wake(nil)
	for d.cfg.Quarantine != nil {
		err := d.cfg.Quarantine(ctx, worker, jobs, reason)
		if err == nil {
			break
		}
		d.cfg.Log.Warn("the quarantine of a worker could not be recorded yet", "worker", worker, "error", err)
		if wait.For(ctx, maxTick); ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// SetQuarantined says which workers the log does not trust, and why. It is called when that changes.
func (d *Dispatcher) SetQuarantined(workers map[string]string) {
	d.mu.Lock()
	changed := d.workers.SetQuarantined(workers)
	d.workersChanged()
	d.mu.Unlock()
	if changed {
		d.wake(nil)
	}
}

// address is the subjects of a worker's orders and answers. Each worker has its own: if nobody listens, NATS names the
// worker.
type address struct{ work, reply string }

func (d *Dispatcher) addressOf(worker string) address {
	return address{d.cfg.Subjects.Work(worker), protocol.ResultsOf(d.results, worker)}
}

// send publishes a message for a worker. A lost message needs no care here: it is sent again if the worker asks, or
// when its tasks take too long.
func (d *Dispatcher) send(to *address, msg []byte) { d.publish(to.work, to.reply, msg) }

func (d *Dispatcher) publish(subject, reply string, parts ...[]byte) {
	var err error
	if len(parts) == 1 {
		err = d.cfg.Conn.Send(subject, reply, parts[0])
	} else {
		err = d.cfg.Conn.SendParts(subject, reply, parts...)
	}
	if err != nil {
		d.cfg.Log.Debug("a message could not be sent", "subject", subject, "error", err)
	}
}

// maxMail bounds the messages of a mailbox: its executor may be busy for a while. Its room bounds their bytes.
// Messages beyond the bounds are dropped, and their tasks take too long in time.
const maxMail = 1 << 20

// mailbox passes messages from NATS, and the ends of what goroutines do, to a job's executor. NATS never waits for it.
type mailbox struct {
	ready chan struct{}  // has a token if there is mail, or if the workers changed
	room  *protocol.Room // for the messages of all mailboxes

	mu     sync.Mutex // guards all that follows
	closed bool
	msgs   [][]byte
	bytes  int // of msgs. Invariant: so many are taken from room
	ends   []end
}

// end is the end of something that a goroutine of an executor did: an event, or a pointer to one of the types below.
type end any

// storedResult is a result that is on the leader's disk.
type storedResult struct {
	event    *schedule.ResultStored
	bytes    []byte
	progress *round.Progress // how far the sub-job is by its result
}

// verifiedResult is what the leader computed itself.
type verifiedResult struct {
	event   *schedule.LeaderComputed
	bytes   []byte         // in a gather round
	partial *round.Partial // in a reduce round
}

// knownProgress is how far a sub-job is by its result, which was recorded before the round began.
type knownProgress struct {
	round    uint64
	task     int
	progress *round.Progress
}

// roundOver: the log has it that a round is over, so the job cannot go on if it still has this round.
type roundOver struct {
	round uint64
	err   error
	late  bool // true if a RecordingLate event was sent for the result
}

func newMailbox(room *protocol.Room) *mailbox {
	return &mailbox{ready: make(chan struct{}, 1), room: room}
}

func (m *mailbox) wake() {
	select {
	case m.ready <- struct{}{}:
	default:
	}
}

// put takes a message, or returns false if there is no room for it.
func (m *mailbox) put(msg []byte) bool {
	m.mu.Lock()
	room := !m.closed && len(m.msgs) < maxMail && m.room.Take(len(msg))
	if room {
		m.msgs = append(m.msgs, msg)
		m.bytes += len(msg)
	}
	m.mu.Unlock()
	m.wake()
	return room
}

func (m *mailbox) putEnd(e end) {
	m.mu.Lock()
	m.ends = append(m.ends, e)
	m.mu.Unlock()
	m.wake()
}

// take moves the mail to the slices, and reuses their memory.
func (m *mailbox) take(msgs [][]byte, ends []end) ([][]byte, []end) {
	m.mu.Lock()
	defer m.mu.Unlock()
	msgs, ends = append(msgs[:0], m.msgs...), append(ends[:0], m.ends...)
	clear(m.msgs)
	clear(m.ends)
	m.msgs, m.ends = m.msgs[:0], m.ends[:0]
	m.room.Give(m.bytes)
	m.bytes = 0
	return msgs, ends
}

// close drops the mail. From then on all messages are dropped.
func (m *mailbox) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed, m.msgs = true, nil
	m.room.Give(m.bytes)
	m.bytes = 0
}
