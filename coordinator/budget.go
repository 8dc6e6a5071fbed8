package coordinator

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coppice-ldl/coppice/coordinator/api"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/metrics"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

// Budget bounds what workers, clients and other coordinators take of this process,
// whatever they do; 0: the default. What jobs take is a matter of Quotas.
type Budget struct {
	// Messages is the memory of messages on their way, in bytes: see parts.
	Messages int64
	// Connections is how many HTTP connections may be open, and how many of NATS clients.
	Connections int
}

// The defaults and least values of Budget.
const (
	DefaultMessages    = 512 << 20
	DefaultConnections = 512
	LeastMessages      = 64 << 20
	LeastConnections   = 8
)

// The descriptors that a coordinator needs besides those of clients (its log and
// snapshots, Raft, routes, blobs that it copies), and those of each connection: of HTTP
// with a file, or with a connection to the leader, and of NATS.
const (
	ownDescriptors = 64
	perConnection  = 3
)

// parts are the parts of a budget of messages, in bytes. Their sum is at most the whole.
type parts struct {
	send     int64 // NATS: what waits for all clients to read it
	received int64 // fragments of unfinished messages, and messages that a job has not looked at
	backlog  int64 // each of the two subscriptions to what workers send
	bodies   int64 // of HTTP requests
}

func (b Budget) parts() parts {
	part := b.Messages / 16
	return parts{send: 6 * part, received: 5 * part, backlog: 3 * part / 2, bodies: 2 * part}
}

// largest is the largest message that goes through: it must fit where it waits to be
// sent and where it is put together.
func (p parts) largest() int64 { return min(p.send, p.received) }

// prepared fills in the defaults and checks what is given.
func (b Budget) prepared() (Budget, error) {
	if b.Messages == 0 {
		b.Messages = DefaultMessages
	}
	if b.Connections == 0 {
		b.Connections = DefaultConnections
	}
	if b.Messages < LeastMessages {
		return b, fmt.Errorf("%w: --message-memory: want at least %[3]s, got %[2]s", ErrUsage, units.Format(b.Messages), units.Format(LeastMessages))
	}
	if b.Connections < LeastConnections {
		return b, fmt.Errorf("%w: --max-connections: want at least %[3]d, got %[2]d", ErrUsage, b.Connections, LeastConnections)
	}
	return b, nil
}

// within bounds the connections by the descriptors that the process may have. note
// says so where they are fewer than was asked for.
func (b Budget) within(descriptors uint64) (_ Budget, note string, err error) {
	need := uint64(ownDescriptors + perConnection*b.Connections)
	if descriptors >= need {
		return b, "", nil
	}
	if least := uint64(ownDescriptors + perConnection*LeastConnections); descriptors < least {
		return b, "", fmt.Errorf("the limit of open files (ulimit -n) is %d, but a coordinator needs at least %d", descriptors, least)
	}
	asked := b.Connections
	b.Connections = int(descriptors-ownDescriptors) / perConnection
	return b, fmt.Sprintf("the limit of open files (ulimit -n) is %d, but %d connections need %d: at most %d connections are accepted", descriptors, asked, need, b.Connections), nil
}

// fitDescriptors keeps the connections within the files that the process may have open:
// Go has raised the soft limit to the hard one.
func (c *Config) fitDescriptors() error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("the limit of open files (ulimit -n) cannot be read: %w", err)
	}
	b, note, err := c.Budget.within(limit.Cur)
	if note != "" {
		c.Log.Warn(note)
	}
	c.Budget = b
	return err
}

// The bounds of an HTTP connection without a request.
const (
	headerWithin = 10 * time.Second
	idleFor      = 30 * time.Second
	maxHeader    = 64 << 10
	// requestShare of the connections may have requests at a time; the others are left to
	// who asks how this coordinator is.
	requestShare = 0.75
)

// boundHTTP returns the HTTP server of a handler, within the budget.
func (n *node) boundHTTP(h http.Handler) *http.Server {
	limits := api.Limits{
		Requests: int(requestShare * float64(n.cfg.Budget.Connections)),
		Bodies:   protocol.NewRoom(int(n.cfg.Budget.parts().bodies)),
	}
	return &http.Server{
		ReadHeaderTimeout: headerWithin, IdleTimeout: idleFor, MaxHeaderBytes: maxHeader,
		ConnState: n.listener.follow, Handler: api.Guard(h, limits),
		ErrorLog: slog.NewLogLogger(n.cfg.Log.Handler(), slog.LevelDebug),
	}
}

// quotas are those of the API: messages that would not go through make no job.
func (n *node) quotas() api.Quotas {
	q := n.cfg.Quotas.api()
	q.Message = n.cfg.Budget.parts().largest()
	return q
}

// relieveEvery is the time between two looks at what NATS clients take, and relieveSoon
// that where it is much, which is an eighth of what may be.
const (
	relieveEvery = 250 * time.Millisecond
	relieveSoon  = 20 * time.Millisecond
	much         = 8
)

// tellEvery is the least time between two lines of the log about it.
const tellEvery = 10 * time.Second

// keepBudget closes NATS clients that take more than they may, and tells what is taken,
// until ctx is done.
func (n *node) keepBudget(ctx context.Context) {
	tick := time.NewTicker(relieveEvery)
	defer tick.Stop()
	var seen taken
	var closed uint64 // not told yet
	var told time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := n.taken()
		now.tell(n.metrics, &seen)
		if closed += now.turned() - seen.turned(); closed > 0 && time.Since(told) > tellEvery {
			n.cfg.Log.Warn("NATS clients were closed or refused, because they read too slowly or too many are connected", "clients", closed)
			closed, told = 0, time.Now()
		}
		seen = now
		every := relieveEvery
		if now.nats.Pending > n.cfg.Budget.parts().send/much {
			every = relieveSoon
		}
		tick.Reset(every)
	}
}

// taken is what others take of the budget.
type taken struct {
	nats     bus.Load
	open     int    // connections of HTTP
	closed   uint64 // for others
	received int    // bytes
	dropped  uint64 // messages
}

// taken looks at what is taken, after NATS clients that take too much were closed.
func (n *node) taken() (t taken) {
	if n.nats != nil {
		n.nats.Relieve()
		t.nats = n.nats.Load()
	}
	t.open, t.closed = n.listener.count()
	t.received, t.dropped = n.conn.Room().Held(), n.conn.Room().Dropped()
	return t
}

// turned counts the NATS clients that were closed or refused.
func (t *taken) turned() uint64 { return t.nats.Closed + t.nats.Refused }

// tell sets the instruments; before is what they were told last.
func (t *taken) tell(m *metrics.Coordinator, before *taken) {
	m.Connections.WithLabelValues("http").Set(float64(t.open))
	m.Connections.WithLabelValues("nats").Set(float64(t.nats.Clients))
	m.ConnectionsClosed.WithLabelValues("http").Add(float64(t.closed - before.closed))
	m.ConnectionsClosed.WithLabelValues("nats").Add(float64(t.turned() - before.turned()))
	m.Messages.WithLabelValues("received").Set(float64(t.received))
	m.Messages.WithLabelValues("sending").Set(float64(t.nats.Pending))
	m.MessagesDropped.Add(float64(t.dropped - before.dropped))
}
