package worker

import (
	"cmp"
	"context"
	"time"

	"github.com/coppice-ldl/coppice/internal/bus"
	"github.com/coppice-ldl/coppice/protocol"
)

const (
	// nearDial bounds the connection to the leader's own NATS server.
	nearDial = time.Second
	// stayPatiences is how often the patience with a leader passes between two tries to
	// move.
	stayPatiences = 5
)

// dial connects to a cluster's NATS, to the leader's own server where it has one.
func (w *worker) dial(ctx context.Context, c *protocol.Cluster, limit time.Duration) (*bus.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	connect := bus.Connect
	if w.cfg.Net != nil {
		connect = w.cfg.Net.Connect
	}
	return connect(ctx, bus.Options{
		URLs: leaderFirst(c), Name: w.id, Ping: cmp.Or(w.ping, protocol.DeriveTimeouts(heartbeatOf(c)).Ping),
		Traffic: &traffic{&w.metrics.Traffic, w.beat}, Log: w.log,
	})
}

func heartbeatOf(c *protocol.Cluster) time.Duration {
	return time.Duration(c.Heartbeat) * time.Millisecond
}

// nearer moves a session to the leader's own NATS server where it is connected to
// another one (since the leader changed, or was not known yet): what the two say to
// each other then passes one server instead of two. It returns nil where the session
// is best kept: while there is work, and for a while after a try.
func (w *worker) nearer(ctx context.Context, s *session) *session {
	leader := w.leading()
	again := leader == s.leader // it leads since the last look at least
	s.leader = leader
	if leader == "" || !again || time.Now().Before(s.stay) || s.conn.ServerName() == leader || !w.idle() {
		return nil
	}
	s.stay = time.Now().Add(stayPatiences * s.patience())
	c, err := w.join.ask(ctx) // where the leader's server is may not have been known
	if err != nil || c.ID != s.cluster.ID || c.Leader != leader || !embeds(c, leader) {
		return nil
	}
	conn, err := w.dial(ctx, c, nearDial)
	if err != nil {
		return nil
	}
	if conn.ServerName() != leader {
		conn.Close()
		return nil
	}
	w.log.Info("moving to the leader's own NATS server", "coordinator", leader)
	return w.follow(s, c, conn)
}

// follow opens a session over conn and then closes s, so that no order is missed of a
// leader that is connected to the same server. Where that fails it returns nil, and s
// goes on.
func (w *worker) follow(s *session, c *protocol.Cluster, conn *bus.Conn) *session {
	next, err := w.attach(c, conn)
	if err != nil {
		w.log.Warn("the leader's NATS server fails", "error", err)
		return nil
	}
	next.leader, next.stay = s.leader, s.stay
	s.cancel()
	s.pulse.Wait()
	w.begins(next)
	w.closeSession(s, false)
	return next
}

// embeds reports whether a coordinator has one of the cluster's NATS servers.
func embeds(c *protocol.Cluster, id string) bool {
	for _, m := range c.Coordinators {
		if m.ID != id {
			continue
		}
		for _, url := range c.NATS {
			if url == m.NATS {
				return true
			}
		}
	}
	return false
}

// leading returns the coordinator that leads, as far as the worker has heard.
func (w *worker) leading() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.leader
}

// idle reports whether nothing is asked of this worker just now, and nothing is on its
// way here.
func (w *worker) idle() bool {
	if w.fetching.Load() > 0 {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, j := range w.jobs {
		if len(j.live) > 0 {
			return false
		}
	}
	return true
}
