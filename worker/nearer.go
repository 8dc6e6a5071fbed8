package worker

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

// dialSilences bounds the connection to another NATS server, in the silence after which
// coordinators are asked.
const dialSilences = 2

// dial connects to a cluster's NATS, to the leader's own server where it has one; avoid,
// where it is not empty, is the server to try last.
func (w *worker) dial(ctx context.Context, c *protocol.Cluster, avoid string, limit time.Duration) (*bus.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	connect := bus.Connect
	if w.cfg.Net != nil {
		connect = w.cfg.Net.Connect
	}
	return connect(ctx, bus.Options{
		URLs: leaderFirst(c, avoid), Name: w.id, Answers: protocol.Subjects{Cluster: c.ID}.Answers(w.id), Ping: cmp.Or(w.ping, protocol.DeriveTimeouts(heartbeatOf(c)).Ping),
		Traffic: &traffic{&w.metrics.Traffic, w}, Log: w.log,
	})
}

func heartbeatOf(c *protocol.Cluster) time.Duration {
	return time.Duration(c.Heartbeat) * time.Millisecond
}

// leaderFirst lists the cluster's NATS servers, that of the leader first where it
// embeds one, and that of the coordinator to avoid last.
func leaderFirst(c *protocol.Cluster, avoid string) []string {
	rank := make(map[string]int)
	for _, m := range c.Coordinators {
		switch m.ID {
		case c.Leader:
			rank[m.NATS] = -1
		case avoid:
			rank[m.NATS] = 1
		}
	}
	urls := slices.Clone(c.NATS)
	slices.SortStableFunc(urls, func(a, b string) int { return cmp.Compare(rank[a], rank[b]) })
	return urls
}

// move moves a session to the leader's own NATS server, which saves what the two say to
// each other a hop, or, where the leader is not heard and its server does not answer, to
// any other than the session's. Whatever is in work goes on. It returns nil where there
// is no such server.
func (w *worker) move(ctx context.Context, s *session, c *protocol.Cluster, silent bool) *session {
	from := s.conn.ServerName()
	conn, err := w.dial(ctx, c, from, dialSilences*s.limits.LeaderSilent)
	if err != nil {
		w.log.Debug("the leader's NATS server does not answer", "coordinator", c.Leader, "error", err)
		return nil
	}
	if at := conn.ServerName(); at != c.Leader && (!silent || at == from) {
		conn.Close()
		return nil
	}
	w.log.Info("the worker moves to another NATS server", "leader", c.Leader, "epoch", c.Epoch, "from", from, "to", conn.ServerName())
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
	next.stay = time.Now().Add(next.limits.LeaderLost)
	w.learn(c.Epoch)
	w.session.Store(next) // before s ends, so that fetches of s are tried again in next
	s.cancel()
	s.pulse.Wait()
	w.begins(next)
	w.closeSession(s, false)
	return next
}

// learn takes an epoch that a coordinator told of: what leaders of before ordered is
// void, and the leader's patience begins anew.
func (w *worker) learn(epoch uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if epoch > w.epoch {
		w.obey(epoch)
		w.leader = "" // until it announces itself
	}
	w.heard, w.vacant = time.Now(), false
}

// embeds reports whether a coordinator has one of the cluster's NATS servers.
func embeds(c *protocol.Cluster, id string) bool {
	for _, m := range c.Coordinators {
		if m.ID == id {
			return slices.Contains(c.NATS, m.NATS)
		}
	}
	return false
}

// external reports whether the cluster's NATS is known not to be the coordinators' own.
func external(c *protocol.Cluster) bool {
	return len(c.Coordinators) > 0 && !slices.ContainsFunc(c.Coordinators, func(m protocol.MemberEntry) bool { return slices.Contains(c.NATS, m.NATS) })
}
