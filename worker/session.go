package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
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

	limits protocol.Timeouts
	tried  uint64    // the epoch under which it was opened, or tried to move, last
	stay   time.Time // under that epoch it does not move before; zero: at once
	fails  int       // to move, in a row, under that epoch
}

const (
	connectTimeout = 5 * time.Second // for NATS, before coordinators are asked again
	// looksIn is how often a session is looked at in the silence after which coordinators
	// are asked.
	looksIn = 5
	// A silence that lasts is answered by a pause between questions, of a part of it and at
	// most so long, so that workers do not keep coordinators busy while nobody leads.
	pausePart = 8
	mostPause = 2 * time.Second
	// mostFails is how often at most the time between two moves doubles, where the
	// leader's server does not answer.
	mostFails = 3
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
				w.log.Warn("NATS does not answer; the worker asks the coordinators again", "urls", c.NATS, "error", err)
			}
			wait.For(ctx, joinPause)
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
	conn, err := w.dial(ctx, c, "", connectTimeout)
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
	s := &session{
		cluster: c, conn: conn, subjects: protocol.Subjects{Cluster: c.ID},
		limits: protocol.DeriveTimeouts(heartbeatOf(c)), tried: c.Epoch,
	}
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
	s.pulse.Go(func() { w.measure(s) })
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

// openBlob finds a blob for who asks this worker for it: results, and shards.
func (w *worker) openBlob(digest string) (bus.Blob, error) {
	if b, err := w.results.open(digest); err == nil {
		return b, nil
	}
	if b, err := w.cache.folder.OpenBlob(digest); err == nil {
		return b, nil
	}
	return nil, bus.ErrNoBlob // whoever asks has it computed again, or finds it elsewhere
}

// watch returns when ctx is done, when another session has followed s, which it
// returns, or when the coordinators say that the cluster is elsewhere, or of another
// version, which is an error.
func (w *worker) watch(ctx context.Context, s *session) (next *session, err error) {
	tick := time.NewTicker(s.limits.LeaderSilent / looksIn)
	defer tick.Stop()
	var again time.Time // when a leader that is not heard may be asked for again
	for {
		select {
		case <-ctx.Done():
			return nil, nil
		case <-tick.C:
		case <-w.news:
		}
		now := w.standing(s)
		if !now.doubts(!external(s.cluster)) || now.silent && time.Now().Before(again) {
			continue
		}
		next, over, err := w.seek(ctx, s, &now)
		if next != nil || over {
			return next, err
		}
		again = time.Now().Add(w.askPause(s))
	}
}

// askPause is the time between two questions for a leader that is not heard. At first
// there is none: coordinators that know no leader wait for one before they answer.
func (w *worker) askPause(s *session) time.Duration {
	silence := w.silence()
	if silence < s.limits.LeaderLost {
		return 0
	}
	return min(silence/pausePart, mostPause)
}

// seek asks the coordinators who leads, and moves the session there. over: it ends
// instead, because the cluster is elsewhere or began anew, or of another version.
func (w *worker) seek(ctx context.Context, s *session, now *standing) (next *session, over bool, err error) {
	answers, err := w.join.askAll(ctx, s.limits.LeaderSilent, now.settles)
	if errors.Is(err, ErrVersion) {
		return nil, now.lost, err
	}
	does, c := now.course(s.cluster, answers)
	switch does {
	case moves:
		next = w.move(ctx, s, c, now.silent)
		if next == nil {
			s.failed(c.Epoch, now.silent)
		}
		return next, false, nil
	case ends:
		w.log.Info("the cluster has new addresses; the worker connects again", "cluster", c.ID, "urls", c.NATS)
		return nil, true, nil
	case anew:
		w.log.Warn("the cluster was started again with another log; the worker connects again", "cluster", c.ID, "epoch", c.Epoch)
		w.leaveCluster()
		return nil, true, nil
	}
	if err != nil && now.lost {
		w.log.Warn("the worker hears no leader, and no coordinator answers", "reason", err)
	}
	return nil, false, nil
}

// leaveCluster makes the next session one of another cluster, though it has the same id.
func (w *worker) leaveCluster() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cluster = ""
}

// failed notes that the leader of an epoch could not be followed to its server. A session
// that hears it tries again later and later, one that does not at its next question.
func (s *session) failed(epoch uint64, silent bool) {
	if epoch > s.tried {
		s.tried, s.fails = epoch, 0
	}
	s.stay = time.Now()
	if !silent {
		s.stay = s.stay.Add(s.limits.LeaderLost << s.fails)
		s.fails = min(s.fails+1, mostFails)
	}
}

// moved reports whether b is another cluster than a, or has its NATS elsewhere.
func moved(a, b *protocol.Cluster) bool {
	x, y := slices.Sorted(slices.Values(a.NATS)), slices.Sorted(slices.Values(b.NATS))
	return a.ID != b.ID || !slices.Equal(x, y)
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
