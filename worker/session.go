package worker

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/machine"
	"github.com/coppice-ldl/coppice/internal/version"
	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/metrics"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

const (
	connectTimeout = 5 * time.Second // for NATS, before the coordinators are asked again
	// dialSilences bounds the connection to another NATS server, in multiples of
	// Timeouts.LeaderSilent.
	dialSilences = 2
	// checksInSilence is how often a session is checked within Timeouts.LeaderSilent.
	checksInSilence = 5
	// A worker that hears no leader pauses between its questions, so that coordinators are not kept
	// busy while nobody leads: for a fraction 1/pausePart of the silence, and at most for maxPause.
	pausePart = 8
	maxPause  = 2 * time.Second
	// maxDoublings bounds how often the time between two moves doubles while the leader's server
	// does not answer.
	maxDoublings = 3
)

// sessions keeps the worker connected to its cluster, at the NATS server of the leader that the
// majority follows. It counts what the connection carries.
type sessions struct {
	*env
	*metrics.Traffic
	coordinators *coordinators
	leader       *leadership
	jobs         *jobs
	heartbeat    *heartbeat

	onLead   func(bus.Message)
	onOrder  func(bus.Message)
	openBlob func(digest string) (bus.Blob, error)

	ctx    context.Context // parent of the contexts of sessions
	cancel context.CancelFunc
	ping   time.Duration // between pings of the connection; 0: by the heartbeat
	news   chan struct{} // one token: the leader, or the connection, has changed
}

// check makes sessions check the present session soon. It never blocks.
func (x *sessions) check() {
	select {
	case x.news <- struct{}{}:
	default:
	}
}

// Reconnected implements bus.Traffic. The worker says what it holds, because it may have missed a new
// leader.
func (x *sessions) Reconnected() {
	x.Traffic.Reconnected()
	x.heartbeat.full()
	x.check()
}

// run opens one session after the other until ctx is done, or until the cluster is of another
// version. It calls ready when the first one is open.
func (x *sessions) run(ctx context.Context, ready func(cluster string)) error {
	for ctx.Err() == nil {
		c, err := x.coordinators.findCluster(ctx)
		if err != nil {
			return err
		}
		conn, err := x.dial(ctx, c, "", connectTimeout)
		var s *session
		if err == nil {
			if x.leader.expect(c.ID, 0) { // jobs and epochs of another cluster mean nothing here
				x.jobs.reset(c.Epoch)
			}
			x.learn(c.Epoch)
			s, err = x.attach(c, conn)
		}
		if err != nil {
			if ctx.Err() == nil {
				x.log.Warn("NATS does not answer; the worker asks the coordinators again", "urls", c.NATS, "error", err)
			}
			wait.For(ctx, joinPause)
			continue
		}
		x.begin(s)
		x.log.Info("connected", "worker", x.id, "cluster", c.ID, "slots", x.cfg.Slots, "http", x.heartbeat.http)
		if ready != nil {
			ready(c.ID)
			ready = nil
		}
		for next := s; next != nil; {
			s = next
			next, err = x.watch(ctx, s)
		}
		x.close(s, ctx.Err() != nil)
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// dial connects to a cluster's NATS, preferably to the leader's server. avoid is the server to try
// last.
func (x *sessions) dial(ctx context.Context, c *protocol.Cluster, avoid string,
	limit time.Duration) (*bus.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	connect := bus.Connect
	if x.cfg.Net != nil {
		connect = x.cfg.Net.Connect
	}
	return connect(ctx, bus.Options{
		URLs: leaderFirst(c, avoid), Name: x.id, Answers: protocol.Subjects{Cluster: c.ID}.Answers(x.id),
		Ping: cmp.Or(x.ping, protocol.DeriveTimeouts(heartbeatOf(c)).Ping), Log: x.log,
		Traffic: x, TLS: x.cfg.TLS,
	})
}

// leaderFirst lists the cluster's NATS servers: first the leader's, if it embeds one, and last the
// server of the coordinator to avoid.
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

// learn takes a leader epoch that a coordinator named.
func (x *sessions) learn(epoch uint64) {
	if epoch > x.jobs.epoch() {
		x.jobs.hear(epoch)
	}
}

// attach makes a session that listens over conn. link does not use it yet, unless there is no
// other. If it fails, conn is closed.
func (x *sessions) attach(c *protocol.Cluster, conn *bus.Conn) (*session, error) {
	s := &session{
		cluster: c, conn: conn, worker: x.id, subjects: protocol.Subjects{Cluster: c.ID},
		limits: protocol.DeriveTimeouts(heartbeatOf(c)), tried: c.Epoch,
	}
	s.ctx, s.cancel = context.WithCancel(x.ctx)
	x.link.session.CompareAndSwap(nil, s)
	if err := x.subscribe(s); err != nil {
		x.close(s, false)
		return nil, err
	}
	return s, nil
}

func (x *sessions) subscribe(s *session) (err error) {
	if s.blobs, err = bus.ServeBlobs(s.conn, s.subjects.WorkerBlobs(x.id), "", x.openBlob); err != nil {
		return err
	}
	for _, listen := range []struct {
		subject string
		receive func(bus.Message)
	}{{s.subjects.Lead(), x.onLead}, {s.subjects.Work(x.id), x.onOrder}} {
		sub, err := s.conn.Subscribe(listen.subject, listen.receive)
		if err != nil {
			return err
		}
		s.orders = append(s.orders, sub)
	}
	return s.conn.Flush(s.ctx)
}

// begin makes link use a session, and starts its heartbeat.
func (x *sessions) begin(s *session) {
	x.link.session.Store(s)
	x.heartbeat.send(s, true, false)
	s.running.Go(func() { x.heartbeat.run(s) })
	s.running.Go(func() { x.link.measure(s, x.metrics) })
}

// watch returns when ctx is done, when another session has followed s, which it returns, or when
// the session should end: the cluster is elsewhere, or of another version, which is an error.
func (x *sessions) watch(ctx context.Context, s *session) (next *session, err error) {
	tick := time.NewTicker(s.limits.LeaderSilent / checksInSilence)
	defer tick.Stop()
	embedded := len(s.cluster.Coordinators) == 0 ||
		slices.ContainsFunc(s.cluster.Coordinators, func(m protocol.MemberEntry) bool {
			return slices.Contains(s.cluster.NATS, m.NATS)
		})
	var again time.Time // when the coordinators may be asked again for a leader that is not heard
	for {
		select {
		case <-ctx.Done():
			return nil, nil
		case <-tick.C:
		case <-x.news:
		}
		x.coordinators.turn()
		now := x.leader.state(s, x.jobs.epoch())
		if !now.shouldAsk(embedded) || now.silent && time.Now().Before(again) {
			continue
		}
		next, over, err := x.seek(ctx, s, &now)
		if next != nil || over {
			return next, err
		}
		again = time.Now().Add(x.coordinators.pause(askPause(x.leader.silence(), s.limits)))
	}
}

// askPause is the time between two questions for a leader that is not heard. There is none at
// first, because coordinators that know no leader wait for one before they answer.
func askPause(silence time.Duration, limits protocol.Timeouts) time.Duration {
	if silence < limits.LeaderLost {
		return 0
	}
	return min(silence/pausePart, maxPause)
}

// seek asks the coordinators who leads, and moves the session there. over is true if the session
// must end instead: the cluster is elsewhere, began an empty log, or is of another version.
func (x *sessions) seek(ctx context.Context, s *session, now *leaderState) (next *session, over bool, err error) {
	answers, err := x.coordinators.ask(ctx, s.limits.LeaderSilent, now.isEnough)
	if errors.Is(err, ErrVersion) {
		return nil, now.lost, err
	}
	does, c := now.decide(s.cluster, answers)
	switch does {
	case moves:
		if next = x.move(ctx, s, c, now.silent); next == nil {
			s.failed(c.Epoch, now.silent)
		}
		return next, false, nil
	case ends:
		x.log.Info("the cluster has new addresses; the worker connects again", "cluster", c.ID, "urls", c.NATS)
		return nil, true, nil
	case startsOver:
		x.log.Warn("the cluster was started again with another log; the worker connects again", "cluster", c.ID,
			"epoch", c.Epoch)
		x.leader.expect("", 0) // the next session finds another cluster, though it has the same id
		return nil, true, nil
	}
	if err != nil && now.lost && !x.coordinators.warnRefused() {
		x.log.Warn("the worker hears no leader, and no coordinator answers", "reason", err)
	}
	return nil, false, nil
}

// failed notes that the session could not move to the leader of an epoch. If the leader is heard,
// the session tries again after pauses that grow; otherwise after the next question.
func (s *session) failed(epoch uint64, silent bool) {
	if epoch > s.tried {
		s.tried, s.fails = epoch, 0
	}
	s.stayUntil = time.Now()
	if !silent {
		s.stayUntil = s.stayUntil.Add(s.limits.LeaderLost << s.fails)
		s.fails = min(s.fails+1, maxDoublings)
	}
}

// move moves a session to the leader's NATS server, so that messages take one hop less. If the
// leader is silent and its server does not answer, any other server than the session's will do.
// What is in work goes on. It returns nil if there is no such server; then s goes on.
func (x *sessions) move(ctx context.Context, s *session, c *protocol.Cluster, silent bool) *session {
	from := s.conn.ServerName()
	conn, err := x.dial(ctx, c, from, dialSilences*s.limits.LeaderSilent)
	if err != nil {
		x.log.Debug("the leader's NATS server does not answer", "coordinator", c.Leader, "error", err)
		return nil
	}
	if at := conn.ServerName(); at != c.Leader && (!silent || at == from) {
		conn.Close()
		return nil
	}
	x.log.Info("the worker moves to another NATS server", "leader", c.Leader, "epoch", c.Epoch, "from", from, "to",
		conn.ServerName())
	next, err := x.attach(c, conn) // before s ends, so that no order is missed
	if err != nil {
		x.log.Warn("the leader's NATS server fails", "error", err)
		return nil
	}
	next.stayUntil = time.Now().Add(next.limits.LeaderLost)
	x.learn(c.Epoch)
	x.leader.expect(c.ID, c.Epoch)
	x.link.session.Store(next) // before s ends, so that fetches of s are tried again in next
	s.cancel()
	s.running.Wait()
	x.begin(next)
	x.close(s, false)
	return next
}

// close ends a session, and with stopping the worker's work, in this order:
//
//  1. Orders end. Another worker shall do what would come now.
//  2. If the worker stops, its jobs end. What that breaks off is not reported as a failure.
//  3. The heartbeat ends, so that none follows the goodbye.
//  4. If the worker stops, it says goodbye, so that the leader does not wait for a silence.
//  5. Blobs are not served any longer.
//  6. The connection is flushed and closed.
func (x *sessions) close(s *session, stopping bool) {
	for _, sub := range s.orders {
		sub.Close()
	}
	if stopping {
		x.jobs.reset(x.jobs.epoch())
		x.cancel()
	}
	s.cancel()
	s.running.Wait()
	if stopping {
		x.heartbeat.send(s, false, true)
	}
	if s.blobs != nil {
		s.blobs.Close()
	}
	x.link.session.CompareAndSwap(s, nil)
	s.conn.Close()
}

const (
	// fullEvery is the number of heartbeats from one full one to the next if nothing happens. A
	// full one may get lost.
	fullEvery = 20
	// fullGap is the least time between two full heartbeats, as a fraction 1/fullGap of the
	// interval. A worker that fetches a thousand shards does not send a thousand lists.
	fullGap = 4
)

// heartbeat tells all coordinators that the worker is there. A full heartbeat also says what the
// worker holds.
type heartbeat struct {
	*env
	http  string // the address of the worker's HTTP server, or empty
	jobs  *jobs
	cache *cache
	disk  *folderWatch
	kick  chan struct{} // one token: send a full one soon

	beat protocol.Heartbeat // memory of send
	buf  []byte
}

// full asks for a full heartbeat soon. It never blocks.
func (h *heartbeat) full() {
	select {
	case h.kick <- struct{}{}:
	default:
	}
}

// run sends heartbeats until the session ends.
func (h *heartbeat) run(s *session) {
	every := heartbeatOf(s.cluster)
	tick := time.NewTicker(every)
	defer tick.Stop()
	var gap <-chan time.Time // runs after a full heartbeat
	kick := h.kick
	for n := 0; ; n++ {
		full := n%fullEvery == 0
		select {
		case <-s.ctx.Done():
			return
		case <-tick.C:
		case <-kick:
			full = true
		case <-gap:
			gap, kick = nil, h.kick
			n--
			continue
		}
		if full {
			kick, gap = nil, time.After(every/fullGap)
		}
		h.send(s, full, false)
	}
}

// send sends one heartbeat. One goroutine at a time calls it.
func (h *heartbeat) send(s *session, full, leaving bool) {
	h.beat = protocol.Heartbeat{
		Worker: h.id, Version: version.String, Protocol: protocol.Version, Numerics: round.Numerics,
		Slots: h.cfg.Slots, Metrics: h.http, Leaving: leaving, Full: full, Busy: int(h.jobs.busy.Load()),
		Problem: h.disk.trouble(),
	}
	if trip := h.link.roundTrip.Load(); trip != nil {
		h.beat.RoundTrip = max(1, min(trip.Mean, time.Hour).Microseconds())
		h.beat.Late = max(1, min(trip.Late(), time.Hour).Microseconds())
	}
	if full {
		h.beat.Holds, _ = h.cache.holdings()
		name := machine.Name()
		h.beat.Host, h.beat.Load, h.beat.Address = name[:min(len(name), protocol.MaxShown)], machine.Load(),
			s.conn.LocalAddress()
		h.beat.Process = h.process
	}
	h.buf = h.beat.Append(h.buf[:0])
	h.link.send(s.subjects.Heartbeats(h.id), h.buf)
}
