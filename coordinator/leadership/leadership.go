// Package leadership is one leadership of a coordinator: it takes the leader epoch, gives work to workers and drives
// the jobs until the leadership is lost. A coordinator runs it while Raft says that it leads. The simulation runs the
// same code on a log and a network of its own.
package leadership

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/dispatch"
	"github.com/coppice-ldl/coppice/coordinator/jobs"
	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/coordinator/verifier"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/metrics"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

// Log is the replicated log as a new leader sees it.
type Log interface {
	jobs.Log
	// Lead commits that node leads and returns the epoch.
	Lead(ctx context.Context, node string) (epoch uint64, err error)
}

var _ Log = (*store.Store)(nil)

// Config is what a leadership needs.
type Config struct {
	ID         string // of this coordinator
	Heartbeat  time.Duration
	Concurrent int // jobs that run at once; others queue
	Store      Log
	Blobs      jobs.Blobs
	Conn       *bus.Conn
	Subjects   protocol.Subjects
	// Members returns the coordinators of the cluster, with the addresses that the log should have. It is called once the
	// epoch is taken.
	Members func() []protocol.MemberEntry
	// Leading, if set, is told who gives work to workers once the epoch is taken, and which events of jobs the log does
	// not have yet. It is told nil when the leadership is over.
	Leading func(*dispatch.Dispatcher, *jobs.Journal)
	Lean    func() (end func()) // see jobs.Config
	// Lost, if set, reports whether a blob is on no coordinator that answers.
	Lost func(digest string) bool
	// Disconnect, if set, closes the connection of a worker to NATS.
	Disconnect func(worker string)
	// Secure is true if connections use TLS.
	Secure  bool
	Metrics *metrics.Coordinator
	Log     *slog.Logger
}

// retryPause is the time between two tries of what a leadership needs.
const retryPause = protocol.RetryOffice

// Run leads until ctx is done: it takes an epoch, then drives jobs. If the dispatcher panics, that ends the leadership,
// and the next one begins with another epoch. All that Run started has stopped when it returns.
func Run(ctx context.Context, cfg Config) {
	for broken := true; broken && ctx.Err() == nil; {
		broken = cfg.lead(ctx)
	}
}

// lead is one leadership. It reports whether the leadership ended because the dispatcher panicked.
func (cfg *Config) lead(ctx context.Context) (broken bool) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	// A disk that stalls may hold up the entry while Raft still takes this coordinator for the leader. Nobody else would
	// lead then, so it tries until the leadership is lost.
	var epoch uint64
	for epoch == 0 {
		var err error
		if epoch, err = cfg.Store.Lead(ctx, cfg.ID); err != nil {
			epoch = 0
			cfg.Log.Info("this coordinator was elected, but cannot lead yet", "error", err)
			wait.For(ctx, retryPause)
		}
		if ctx.Err() != nil {
			return false
		}
	}
	cfg.Log.Info("this coordinator leads", "epoch", epoch)
	for _, m := range cfg.Members() { // the log may have no address of a coordinator, or another one
		if known, ok := cfg.Store.State().Member(m.ID); ok && known == m {
			continue
		}
		if _, _, err := cfg.Store.Propose(ctx, protocol.EncodeEntry(protocol.EntryMember, m)); err != nil {
			cfg.Log.Warn("a coordinator could not be recorded as a member", "member", m.ID, "error", err)
		}
	}
	var revoked func() []string
	if cfg.Secure {
		revoked = func() (serials []string) {
			for _, r := range cfg.Store.State().Revocations() {
				serials = append(serials, r.Serial)
			}
			return serials
		}
	}
	journal := jobs.NewJournal(epoch, cfg.Store.State)
	d := dispatch.New(dispatch.Config{
		ID: cfg.ID, Epoch: epoch, Heartbeat: cfg.Heartbeat, Conn: cfg.Conn, Subjects: cfg.Subjects,
		Results: &jobs.Results{Epoch: epoch, Store: cfg.Store, Blobs: cfg.Blobs, Journal: journal},
		Metrics: cfg.Metrics, Log: cfg.Log,
		Quarantined: cfg.Store.State().Quarantined(), Verifier: &verifier.Verifier{Blobs: cfg.Blobs}, Lost: cfg.Lost,
		Disconnect: cfg.Disconnect, Revoked: revoked,
		Quarantine: func(ctx context.Context, worker string, jobs []uint64, reason string) error {
			return cfg.quarantine(ctx, epoch, worker, jobs, reason)
		},
	})
	if cfg.Leading != nil {
		cfg.Leading(d, journal)
	}
	cfg.Metrics.Leader.Set(1)
	var tasks sync.WaitGroup
	tasks.Go(func() {
		for ctx.Err() == nil { // again if NATS was away: without the dispatcher no worker hears of this leader
			err := d.Run(ctx)
			if stack := engine.PanicStack(err); stack != "" {
				cfg.Log.Error("this leadership ends", "reason", err, "stack", stack)
				broken = true
				end()
			} else if ctx.Err() == nil {
				cfg.Log.Warn("tasks are sent to workers again", "error", err)
			}
			wait.For(ctx, retryPause)
		}
	})
	tasks.Go(func() { cfg.followQuarantine(ctx, d) })
	jobs.New(jobs.Config{
		Epoch: epoch, Concurrent: cfg.Concurrent, Store: cfg.Store, Blobs: cfg.Blobs,
		Dispatch: d, Lean: cfg.Lean, Journal: journal, Metrics: cfg.Metrics, Log: cfg.Log,
	}).Run(ctx)
	tasks.Wait()
	if cfg.Leading != nil {
		cfg.Leading(nil, nil)
	}
	cfg.Metrics.Leader.Set(0)
	cfg.Metrics.ForgetJob("")
	cfg.Metrics.Shares.Reset()
	cfg.Log.Info("this coordinator does not lead any more", "epoch", epoch)
	return broken
}

// quarantine commits, under an epoch, that a worker's results are wrong.
func (cfg *Config) quarantine(ctx context.Context, epoch uint64, worker string, jobs []uint64, reason string) error {
	for {
		n := min(len(jobs), protocol.MaxSuspects)
		now := time.Now()
		entry := protocol.SuspectEntry{Epoch: epoch, Worker: worker, Jobs: jobs[:n], Reason: reason, Time: now.Unix(),
			Millis: protocol.Millis(now)}
		if _, _, err := cfg.Store.Propose(ctx, protocol.EncodeEntry(protocol.EntrySuspect, entry)); err != nil {
			return err
		}
		if jobs = jobs[n:]; len(jobs) == 0 {
			return nil
		}
	}
}

// followQuarantine tells the dispatcher whenever the log has other quarantined workers, until ctx is done. It compares
// with the log's last word, not with the dispatcher: the entry of a worker that the dispatcher found may be on its way.
func (cfg *Config) followQuarantine(ctx context.Context, d *dispatch.Dispatcher) {
	var last map[string]string
	for {
		st, changed := cfg.Store.Watch()
		if now := st.Quarantined(); !maps.Equal(now, last) {
			d.SetQuarantined(now)
			last = now
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}
