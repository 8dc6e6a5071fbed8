package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/internal/bus"
	"github.com/coppice-ldl/coppice/protocol"
)

// session is one connection to one cluster. Jobs outlive it.
type session struct {
	ctx      context.Context // ends with the session
	cancel   context.CancelFunc
	cluster  *protocol.Cluster
	conn     *bus.Conn
	subjects protocol.Subjects
	orders   []*bus.Subscription
	blobs    *bus.Served
	pulse    sync.WaitGroup

	leader string    // at the last look for a nearer server
	stay   time.Time // it does not move before
}

const (
	connectTimeout = 5 * time.Second // for NATS, before coordinators are asked again
	// patience is how many heartbeats without a leader pass before coordinators
	// are asked whether the cluster is elsewhere now.
	patience    = protocol.SilentBeats
	minPatience = protocol.LeastSilence
)

// serve runs sessions until ctx is done or the cluster is of another version.
func (w *worker) serve(ctx context.Context) error {
	ready := w.cfg.Ready
	for ctx.Err() == nil {
		c, err := w.join.cluster(ctx)
		if err != nil {
			return err
		}
		s, err := w.connect(ctx, c)
		if err != nil {
			if ctx.Err() == nil {
				w.log.Warn("NATS does not answer; asking the coordinators again", "urls", c.NATS, "error", err)
			}
			pause(ctx, joinPause)
			continue
		}
		w.log.Info("connected", "worker", w.id, "cluster", c.ID, "slots", w.cfg.Slots, "http", w.address)
		if ready != nil {
			ready(Info{w.id, c.ID, w.address})
			ready = nil
		}
		if err := w.attend(ctx, s); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// connect connects to a cluster and opens a session with it.
func (w *worker) connect(ctx context.Context, c *protocol.Cluster) (*session, error) {
	conn, err := w.dial(ctx, c, connectTimeout)
	if err != nil {
		return nil, err
	}
	return w.openSession(c, conn)
}

// attend watches a session, and those that follow it, to the end.
func (w *worker) attend(ctx context.Context, s *session) error {
	for {
		next, err := w.watch(ctx, s)
		if next == nil {
			w.closeSession(s, ctx.Err() != nil)
			return err
		}
		s = next
	}
}

// openSession listens to the leader over conn and says what this worker holds. Where
// it fails, conn is closed.
func (w *worker) openSession(c *protocol.Cluster, conn *bus.Conn) (*session, error) {
	w.enterCluster(c)
	s, err := w.attach(c, conn)
	if err == nil {
		w.begins(s)
	}
	return s, err
}

// attach makes a session that listens over conn. It is not the worker's yet, unless
// there is no other. Where it fails, conn is closed.
func (w *worker) attach(c *protocol.Cluster, conn *bus.Conn) (*session, error) {
	s := &session{cluster: c, conn: conn, subjects: protocol.Subjects{Cluster: c.ID}}
	s.ctx, s.cancel = context.WithCancel(w.ctx)
	w.session.CompareAndSwap(nil, s)
	if err := w.subscribe(s); err != nil {
		w.closeSession(s, false)
		return nil, err
	}
	return s, nil
}

// begins makes a session the worker's, and its heart beat.
func (w *worker) begins(s *session) {
	w.session.Store(s)
	w.beat.send(w, true, false)
	s.pulse.Go(func() { w.beat.run(s.ctx, heartbeatOf(s.cluster), w) })
}

func (w *worker) subscribe(s *session) error {
	var err error
	if s.blobs, err = bus.ServeBlobs(s.conn, s.subjects.BlobsOf(w.id), "", w.openBlob); err != nil {
		return err
	}
	for _, listen := range []struct {
		subject string
		f       func(bus.Message)
	}{{s.subjects.Lead(), w.onLead}, {s.subjects.Work(w.id), w.inbox.handle}} {
		sub, err := s.conn.Subscribe(listen.subject, listen.f)
		if err != nil {
			return err
		}
		s.orders = append(s.orders, sub)
	}
	return s.conn.Flush(s.ctx)
}

// leaderFirst lists the cluster's NATS servers, that of the leader first where it
// embeds one; see nearer.
func leaderFirst(c *protocol.Cluster) []string {
	urls := slices.Clone(c.NATS)
	for _, m := range c.Coordinators {
		if i := slices.Index(urls, m.NATS); m.ID == c.Leader && i > 0 {
			urls[0], urls[i] = urls[i], urls[0]
		}
	}
	return urls
}

// patience is how long the leader may be silent.
func (s *session) patience() time.Duration {
	return max(minPatience, patience*heartbeatOf(s.cluster))
}

// openBlob finds a blob for who asks this worker for it: results, and shards.
func (w *worker) openBlob(digest string) (bus.Blob, bool) {
	if b, err := w.results.open(digest); err == nil {
		return b, true
	}
	if b, err := w.cache.folder.OpenBlob(digest); err == nil {
		return b, true
	}
	return nil, false
}

// watch returns when ctx is done, when another session has followed s, which it
// returns, or when the coordinators say that the cluster is elsewhere, or of another
// version, which is an error.
func (w *worker) watch(ctx context.Context, s *session) (next *session, err error) {
	limit := s.patience()
	tick := time.NewTicker(limit / 4)
	defer tick.Stop()
	for asked := time.Now(); ; {
		select {
		case <-ctx.Done():
			return nil, nil
		case <-tick.C:
		}
		if next := w.nearer(ctx, s); next != nil {
			return next, nil
		}
		if w.silence() < limit || time.Since(asked) < limit {
			continue
		}
		asked = time.Now()
		if over, err := w.elsewhere(ctx, s); over {
			return nil, err
		}
	}
}

// elsewhere asks the coordinators, where no leader is heard, whether a session is
// over: because the cluster is elsewhere or began anew, or of another version.
func (w *worker) elsewhere(ctx context.Context, s *session) (over bool, err error) {
	c, err := w.join.ask(ctx)
	switch {
	case errors.Is(err, ErrVersion):
		return true, err
	case err != nil:
		w.log.Warn("no leader is heard and no coordinator answers", "reason", err)
	case moved(s.cluster, c):
		w.log.Info("the cluster has moved; connecting again", "cluster", c.ID, "urls", c.NATS)
		return true, nil
	case w.anew(c):
		w.log.Warn("the cluster has begun again, with another log; connecting again", "cluster", c.ID, "epoch", c.Epoch)
		return true, nil
	}
	return false, nil
}

// moved reports whether b is another cluster than a, or has its NATS elsewhere.
func moved(a, b *protocol.Cluster) bool {
	x, y := slices.Sorted(slices.Values(a.NATS)), slices.Sorted(slices.Values(b.NATS))
	return a.ID != b.ID || !slices.Equal(x, y)
}

// anew reports whether the cluster's leader, unheard so far, is of an epoch of
// before: coordinators of the same addresses began an empty log. Then jobs and
// epochs of the old one mean nothing any more.
func (w *worker) anew(c *protocol.Cluster) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.Leader == "" || c.Epoch >= w.epoch {
		return false
	}
	w.cluster = ""
	return true
}

// closeSession ends a session, and with stopping the worker's work, in this order:
//
//  1. orders end: what would come now, another worker shall do
//  2. when the worker stops, all jobs' contexts end: what that breaks off is not
//     reported as a failure
//  3. the pulse ends, so that no beat follows the goodbye
//  4. the goodbye, when the worker stops: the leader need not wait for silence
//  5. blobs are not served any more
//  6. the connection is flushed and closed
func (w *worker) closeSession(s *session, stopping bool) {
	for _, sub := range s.orders {
		sub.Close()
	}
	if stopping {
		w.cancel()
	}
	s.cancel()
	s.pulse.Wait()
	if stopping {
		w.beat.send(w, false, true)
	}
	if s.blobs != nil {
		s.blobs.Close()
	}
	w.session.CompareAndSwap(s, nil)
	s.conn.Close()
}

func (w *worker) subjects() protocol.Subjects {
	s := w.session.Load()
	if s == nil {
		panic(fmt.Sprintf("worker: %s has no session", w.id))
	}
	return s.subjects
}
