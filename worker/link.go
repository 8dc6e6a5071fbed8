package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coppice-ldl/coppice/internal/rtt"
	"github.com/coppice-ldl/coppice/metrics"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
	"github.com/coppice-ldl/coppice/worker/batch"
)

// env is what the parts of a worker share.
type env struct {
	cfg     Config
	id      string // the name of the worker
	process string // drawn at random; another process with this name has another one
	log     *slog.Logger
	metrics *metrics.Worker
	link    *link
}

// session is one connection to one cluster. Jobs outlive it. Only sessions uses the fields after
// running.
type session struct {
	ctx      context.Context // ends with the session
	cancel   context.CancelFunc
	cluster  *protocol.Cluster
	conn     *bus.Conn
	worker   string // its name
	subjects protocol.Subjects
	limits   protocol.Timeouts
	orders   []*bus.Subscription
	blobs    *bus.Served
	running  sync.WaitGroup // the heartbeat, and the measurement of the round trip

	tried     uint64    // the leader epoch of its latest attempt to move, or of its beginning
	stayUntil time.Time // under that epoch it does not move before; zero: at once
	fails     int       // to move, in a row, under that epoch
}

func heartbeatOf(c *protocol.Cluster) time.Duration {
	return time.Duration(c.Heartbeat) * time.Millisecond
}

// link is the worker's connection, over any session. Without a session, messages are lost. Errors
// are only logged, because the other side asks again.
type link struct {
	log       *slog.Logger
	session   atomic.Pointer[session]      // nil while there is none
	roundTrip atomic.Pointer[rtt.Estimate] // the round trip to the session's NATS server; nil: not measured yet
}

var (
	errNoSession = errors.New("worker: there is no connection to the cluster")
	errMoved     = errors.New("worker: the connection has changed meanwhile")
)

// send sends a message.
func (l *link) send(subject string, message []byte) {
	if s := l.session.Load(); s != nil {
		l.sent(subject, s.conn.Send(subject, "", message))
	}
}

// sendParts sends a message that consists of parts, without joining them.
func (l *link) sendParts(subject string, parts ...[]byte) {
	if s := l.session.Load(); s != nil {
		l.sent(subject, s.conn.SendParts(subject, "", parts...))
	}
}

func (l *link) sent(subject string, err error) {
	if err != nil {
		l.log.Debug("a message could not be sent", "subject", subject, "error", err)
	}
}

// reuse gives the memory of a message that nothing reads any longer to later messages.
func (l *link) reuse(message []byte) {
	if s := l.session.Load(); s != nil {
		s.conn.Room().Reuse(message)
	}
}

// fetch pulls a blob from any coordinator that has it. It fails if the session ends meanwhile,
// because no answer would come. If another session has followed, the error is errMoved, and the
// caller may try again.
func (l *link) fetch(ctx context.Context, digest string, size int64, to io.Writer) error {
	s := l.session.Load()
	if s == nil {
		return errNoSession
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	err := s.conn.FetchBlob(ctx, s.subjects.Fetch(s.worker), digest, size, to)
	if next := l.session.Load(); err != nil && s.ctx.Err() != nil && next != nil && next != s {
		return fmt.Errorf("%w: %w", errMoved, err)
	}
	return err
}

// fetchBytes fetches a blob that a job names: a list of folds, or initial weights.
func (l *link) fetchBytes(ctx context.Context, digest string, size int64) ([]byte, error) {
	var b bytes.Buffer
	for {
		err := l.fetch(ctx, digest, size, &b)
		if err == nil {
			return b.Bytes(), nil
		}
		if !errors.Is(err, errMoved) || ctx.Err() != nil {
			return nil, batch.Passing(err)
		}
		b.Reset()
	}
}

const (
	tripEvery  = time.Second     // between two measurements of the round trip
	tripAtMost = 2 * time.Second // for a measurement
)

// measure measures the round trip to the session's NATS server until the session ends.
func (l *link) measure(s *session, m *metrics.Worker) {
	l.roundTrip.Store(nil)
	tick := time.NewTicker(tripEvery)
	defer tick.Stop()
	var e rtt.Estimate
	for {
		ctx, cancel := context.WithTimeout(s.ctx, tripAtMost)
		d, err := s.conn.RTT(ctx)
		cancel()
		if err == nil {
			e.Add(d)
			now := e
			l.roundTrip.Store(&now)
			m.RoundTrip.Set(e.Mean.Seconds())
		}
		select {
		case <-s.ctx.Done():
			return
		case <-tick.C:
		}
	}
}
