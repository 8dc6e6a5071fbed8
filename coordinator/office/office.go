// Package office is one leadership of a coordinator: it takes the epoch, gives
// work to workers and drives the jobs until the leadership is lost. A coordinator
// runs it while Raft says that it leads, and the simulation runs the same code on
// a log and a network of its own.
package office

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/dispatch"
	"github.com/coppice-ldl/coppice/coordinator/jobs"
	"github.com/coppice-ldl/coppice/coordinator/referee"
	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/metrics"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

// Log is the replicated log as the one sees it who takes the lead.
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
	// Members returns the coordinators of the cluster, with the addresses that the
	// log should have; it is called once the epoch is taken.
	Members func() []protocol.MemberEntry
	// Leading, where set, is told who gives work to workers once the epoch is
	// taken, and nil when the leadership is over.
	Leading func(*dispatch.Dispatcher)
	Lean    func() (end func()) // see jobs.Config
	// Lost, if set, reports whether a blob is on no coordinator that answers.
	Lost    func(digest string) bool
	Metrics *metrics.Coordinator
	Log     *slog.Logger
}

// Run is one leadership: it takes the epoch, then drives jobs until ctx is done.
// All that it started has stopped when it returns.
func Run(ctx context.Context, cfg Config) {
	epoch, ok := cfg.takeEpoch(ctx)
	if !ok {
		return
	}
	cfg.Log.Info("this coordinator leads", "epoch", epoch)
	cfg.introduce(ctx)
	d := dispatch.New(dispatch.Config{
		ID: cfg.ID, Epoch: epoch, Heartbeat: cfg.Heartbeat, Conn: cfg.Conn, Subjects: cfg.Subjects,
		Results: &jobs.Results{Epoch: epoch, Store: cfg.Store, Blobs: cfg.Blobs},
		Metrics: cfg.Metrics, Log: cfg.Log,
		Quarantined: cfg.Store.State().Distrusted(), Quarantine: cfg.suspect(epoch), Verifier: &referee.Referee{Blobs: cfg.Blobs}, Lost: cfg.Lost,
	})
	cfg.leading(d)
	cfg.Metrics.Leader.Set(1)
	var tasks sync.WaitGroup
	tasks.Go(func() { cfg.dispatch(ctx, d) })
	tasks.Go(func() { cfg.followTrust(ctx, d) })
	jobs.New(jobs.Config{
		Epoch: epoch, Concurrent: cfg.Concurrent, Store: cfg.Store, Blobs: cfg.Blobs,
		Dispatch: d, Lean: cfg.Lean, Metrics: cfg.Metrics, Log: cfg.Log,
	}).Run(ctx)
	tasks.Wait()
	cfg.leading(nil)
	cfg.Metrics.Leader.Set(0)
	cfg.Metrics.ForgetJob("")
	cfg.Metrics.Shares.Reset()
	cfg.Log.Info("this coordinator does not lead any more", "epoch", epoch)
}

func (cfg *Config) leading(d *dispatch.Dispatcher) {
	if cfg.Leading != nil {
		cfg.Leading(d)
	}
}

// dispatch runs the dispatcher until ctx is done, again where NATS was away:
// without it no worker hears of this leader.
func (cfg *Config) dispatch(ctx context.Context, d *dispatch.Dispatcher) {
	for ctx.Err() == nil {
		err := d.Run(ctx)
		if ctx.Err() == nil {
			cfg.Log.Warn("tasks are sent to workers again", "error", err)
		}
		wait.For(ctx, retryPause)
	}
}

// retryPause is the time between two tries of what an office needs.
const retryPause = protocol.RetryOffice

// takeEpoch commits a Lead entry. What stops it may pass while Raft goes on to
// take this coordinator for the leader (a disk that stalls), and nobody else would
// lead then: so it tries until ctx is done, which is when the office is lost.
func (cfg *Config) takeEpoch(ctx context.Context) (epoch uint64, ok bool) {
	for ctx.Err() == nil {
		epoch, err := cfg.Store.Lead(ctx, cfg.ID)
		if err == nil {
			return epoch, true
		}
		cfg.Log.Info("this coordinator was elected, but cannot lead yet", "error", err)
		wait.For(ctx, retryPause)
	}
	return 0, false
}

// introduce records the addresses of all coordinators where the log does not have
// them yet, or has others.
func (cfg *Config) introduce(ctx context.Context) {
	for _, m := range cfg.Members() {
		if known, ok := cfg.Store.State().Member(m.ID); ok && known == m {
			continue
		}
		if _, _, err := cfg.Store.Propose(ctx, protocol.EncodeEntry(protocol.EntryMember, m)); err != nil {
			cfg.Log.Warn("a coordinator could not be recorded as a member", "member", m.ID, "error", err)
		}
	}
}
