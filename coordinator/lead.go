package coordinator

import (
	"context"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/office"
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

// lead is one leadership: it ends with ctx.
func (n *node) lead(ctx context.Context) {
	office.Run(ctx, office.Config{
		ID: n.cfg.ID, Heartbeat: n.cfg.Heartbeat, Concurrent: n.cfg.Concurrent,
		Store: n.store, Blobs: n.blobs, Conn: n.conn, Subjects: n.subjects,
		Members: n.roster.known, Leading: n.leading.Store,
		Metrics: n.metrics, Log: n.cfg.Log,
	})
}

// observe keeps the gauges of Raft and of the blob folder.
func (n *node) observe(ctx context.Context) {
	tick := time.NewTicker(n.cfg.timeouts.ObserveGauges)
	defer tick.Stop()
	for {
		st := n.store.Stats()
		n.metrics.SetRaftState(strings.ToLower(st.Role))
		n.metrics.RaftTerm.Set(float64(st.Term))
		n.metrics.RaftLastContact.Set(max(0, st.LastContact.Seconds()))
		n.metrics.RaftApplied.Set(float64(st.AppliedIndex))
		s := n.store.State()
		n.metrics.Epoch.Set(float64(s.Epoch()))
		n.observeWaits(s)
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
