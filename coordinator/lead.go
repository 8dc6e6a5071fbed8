package coordinator

import (
	"context"

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
		ID: n.cfg.ID, Heartbeat: n.cfg.Heartbeat, Concurrent: n.cfg.Concurrent, Lean: n.cfg.Lean,
		Store: n.store, Blobs: n.blobs, Conn: n.conn, Subjects: n.subjects,
		Members: n.roster.known, Leading: n.leading.Store, Lost: n.copies.Unavailable,
		Metrics: n.metrics, Log: n.cfg.Log,
	})
}
