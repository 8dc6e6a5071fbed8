package coordinator

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/dispatch"
	"github.com/coppice-ldl/coppice/coordinator/jobs"
	"github.com/coppice-ldl/coppice/internal/version"
	"github.com/coppice-ldl/coppice/protocol"
)

// term is one leadership that runs.
type term struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// begin starts to lead.
func (n *node) begin(ctx context.Context) *term {
	ctx, cancel := context.WithCancel(ctx)
	t := &term{cancel, make(chan struct{})}
	go func() {
		defer close(t.done)
		n.lead(ctx)
	}()
	return t
}

// end stops a leadership, if there is one, and waits for it.
func (t *term) end() {
	if t != nil {
		t.cancel()
		<-t.done
	}
}

// followLeadership leads while Raft says that this coordinator is the leader.
func (n *node) followLeadership(ctx context.Context) error {
	var now *term
	defer func() { now.end() }()
	changes := n.store.Leadership()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-n.store.Down():
			return n.store.Err()
		case leads := <-changes:
			now.end()
			now = nil
			if leads {
				now = n.begin(ctx)
			}
		}
	}
}

// lead is one leadership: it takes the epoch, then drives jobs until ctx is done.
func (n *node) lead(ctx context.Context) {
	log := n.cfg.Log
	epoch, ok := n.takeEpoch(ctx)
	if !ok {
		return
	}
	log.Info("this coordinator leads", "epoch", epoch)
	n.introduce(ctx)
	d := dispatch.New(dispatch.Config{
		ID: n.cfg.ID, Epoch: epoch, Heartbeat: n.cfg.Heartbeat, Conn: n.conn, Subjects: n.subjects,
		Parts:   &jobs.Parts{Epoch: epoch, Store: n.store, Blobs: n.blobs},
		Metrics: n.metrics, Log: log,
	})
	n.leading.Store(d)
	n.metrics.Leader.Set(1)
	var tasks sync.WaitGroup
	tasks.Go(func() { // again where NATS was away: without it no worker hears of this leader
		for ctx.Err() == nil {
			err := d.Run(ctx)
			if ctx.Err() == nil {
				log.Warn("the dispatcher begins anew", "error", err)
			}
			pause(ctx, retryPause)
		}
	})
	jobs.New(jobs.Config{
		Epoch: epoch, Concurrent: n.cfg.Concurrent, Store: n.store, Blobs: n.blobs,
		Dispatch: d, Metrics: n.metrics, Log: log,
	}).Run(ctx)
	tasks.Wait()
	n.leading.Store(nil)
	n.metrics.Leader.Set(0)
	n.metrics.ForgetJob("")
	log.Info("this coordinator no longer leads", "epoch", epoch)
}

// retryPause is the time between two tries of what an office needs.
const retryPause = 100 * time.Millisecond

// takeEpoch commits a Lead entry. What stops it may pass while Raft goes on to
// take this coordinator for the leader (a disk that stalls), and nobody else would
// lead then: so it tries until ctx is done, which is when the office is lost.
func (n *node) takeEpoch(ctx context.Context) (epoch uint64, ok bool) {
	for ctx.Err() == nil {
		epoch, err := n.store.Lead(ctx, n.cfg.ID)
		if err == nil {
			return epoch, true
		}
		n.cfg.Log.Info("the leadership does not begin yet", "error", err)
		pause(ctx, retryPause)
	}
	return 0, false
}

// pause waits, or until ctx is done.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// introduce records the addresses of all coordinators where the log does not have
// them yet.
func (n *node) introduce(ctx context.Context) {
	for _, p := range n.cfg.Peers {
		m := protocol.MemberEntry{ID: p.ID, HTTP: p.addr(0), Raft: p.addr(1), NATS: "nats://" + p.addr(2), Version: version.String}
		if p.ID == n.cfg.ID {
			m.HTTP, m.Raft, m.NATS = n.cfg.HTTPAddr, n.cfg.RaftAddr, "nats://"+n.cfg.NATSAddr
		}
		if known, ok := n.store.State().Member(p.ID); ok && (known == m || p.ID != n.cfg.ID) {
			continue
		}
		if _, _, err := n.store.Propose(ctx, protocol.EncodeEntry(protocol.EntryMember, m)); err != nil {
			n.cfg.Log.Warn("a member could not be recorded", "member", p.ID, "error", err)
		}
	}
}

// observeEvery is how often gauges of Raft and of the blobs are read.
const observeEvery = time.Second

// observe keeps the gauges of Raft and of the blob folder.
func (n *node) observe(ctx context.Context) {
	tick := time.NewTicker(observeEvery)
	defer tick.Stop()
	for {
		st := n.store.Stats()
		n.metrics.SetRaftState(strings.ToLower(st.Role))
		n.metrics.RaftTerm.Set(float64(st.Term))
		n.metrics.RaftLastContact.Set(max(0, st.LastContact.Seconds()))
		n.metrics.RaftApplied.Set(float64(st.AppliedIndex))
		s := n.store.State()
		n.metrics.Epoch.Set(float64(s.Epoch()))
		shards := make(map[string]bool)
		for _, d := range s.Datasets() {
			for _, ref := range d.Manifest.Shards {
				shards[ref.Digest] = true
			}
		}
		n.metrics.Shards.Set(float64(len(shards)))
		if count, bytes, err := n.blobs.Folder.Usage(); err == nil {
			n.metrics.Blobs.Set(float64(count))
			n.metrics.BlobBytes.Set(float64(bytes))
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
