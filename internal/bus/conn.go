package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// connectTimeout bounds Connect where its context has no deadline.
	connectTimeout = 5 * time.Second
	// reconnectWait is the greatest pause between two tries to reconnect.
	reconnectWait = 100 * time.Millisecond
	// writeTimeout bounds one write to the socket: a server that hangs must not
	// hold a sender.
	writeTimeout = 2 * time.Second
	// drainTimeout bounds Close.
	drainTimeout = 2 * time.Second
	// The greatest backlog of a subscription; beyond it messages are dropped.
	backlogMessages = 1 << 20
	backlogBytes    = maxPending
)

// Options describe a connection.
type Options struct {
	URLs    []string      // of NATS servers, any of which will do
	Server  *Server       // connect to this server in-process instead
	Name    string        // shown in the server's log
	Ping    time.Duration // default DefaultPing
	Traffic Traffic       // default: not counted
	Log     *slog.Logger  // default: nothing is logged
}

// Conn is a connection to NATS that comes back by itself, for ever. All methods
// may be called concurrently.
type Conn struct {
	nc      *nats.Conn
	traffic Traffic
	log     *slog.Logger
	sender  uint64 // names this connection in fragments

	mu      sync.Mutex // held while the fragments of one message are sent
	message atomic.Uint64
	closed  chan struct{}
	serving sync.WaitGroup // handlers of Serve
}

// Connect connects to a server. It tries until ctx is done (5 s where ctx has no
// deadline), then says in one line who did not answer.
func Connect(ctx context.Context, o Options) (*Conn, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	c := &Conn{traffic: o.Traffic, log: o.Log, sender: rand.Uint64(), closed: make(chan struct{})}
	if c.traffic == nil {
		c.traffic = uncounted{}
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, connectTimeout)
		defer cancel()
	}
	if err := c.dial(ctx, &o); err != nil {
		return nil, err
	}
	return c, nil
}

func (o *Options) check() error {
	if o.Server == nil && len(o.URLs) == 0 {
		return errors.New("bus: no URL of a NATS server")
	}
	for _, s := range o.URLs {
		u, err := url.Parse(s)
		if err != nil || u.Host == "" {
			return fmt.Errorf("bus: %q is not the URL of a NATS server: nats://host:port is", s)
		}
	}
	return nil
}

// dial tries to connect until it succeeds, is refused, or ctx is done.
func (c *Conn) dial(ctx context.Context, o *Options) error {
	opts := c.options(o)
	for {
		left := time.Second
		if end, ok := ctx.Deadline(); ok {
			left = max(time.Millisecond, min(left, time.Until(end)))
		}
		nc, err := nats.Connect(strings.Join(o.URLs, ","), append(opts, nats.Timeout(left))...)
		if err == nil {
			c.nc = nc
			return nil
		}
		if errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrSecureConnRequired) {
			return fmt.Errorf("bus: the NATS server at %s refuses: %w", o.where(), err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("bus: no NATS server answers at %s: %w", o.where(), err)
		case <-time.After(reconnectWait):
		}
	}
}

func (o *Options) where() string {
	if o.Server != nil {
		return "the embedded server"
	}
	return strings.Join(o.URLs, ", ")
}

// options returns the options of the library but for the dial timeout.
func (c *Conn) options(o *Options) []nats.Option {
	ping := o.Ping
	if ping == 0 {
		ping = DefaultPing
	}
	opts := []nats.Option{
		nats.Name(o.Name),
		nats.MaxReconnects(-1),
		nats.CustomReconnectDelay(func(int) time.Duration {
			return reconnectWait/2 + rand.N(reconnectWait/2)
		}),
		nats.ReconnectBufSize(-1),
		nats.PingInterval(ping),
		nats.MaxPingsOutstanding(pingsOut),
		nats.FlusherTimeout(writeTimeout),
		nats.ReconnectOnFlusherError(),
		nats.DrainTimeout(drainTimeout),
		nats.DisconnectErrHandler(c.lost),
		nats.ReconnectHandler(c.back),
		nats.ErrorHandler(c.failed),
		nats.ClosedHandler(func(*nats.Conn) { close(c.closed) }),
	}
	if o.Server != nil {
		opts = append(opts, nats.InProcessServer(o.Server.s))
	}
	return opts
}

func (c *Conn) lost(nc *nats.Conn, err error) {
	if err == nil && nc.IsClosed() || nc.IsDraining() {
		return
	}
	c.traffic.Disconnected()
	c.log.Warn("lost the connection to NATS", "error", err)
}

func (c *Conn) back(nc *nats.Conn) {
	c.traffic.Reconnected()
	c.log.Info("connected to NATS again", "url", nc.ConnectedUrlRedacted())
}

// failed logs what NATS reports on the side, such as dropped messages.
func (c *Conn) failed(_ *nats.Conn, sub *nats.Subscription, err error) {
	subject := ""
	if sub != nil {
		subject = sub.Subject
	}
	c.log.Warn("nats", "error", err, "subject", subject)
}

// Connected reports whether a server answers now.
func (c *Conn) Connected() bool { return c.nc.IsConnected() }

// RTT measures the round trip to the server.
func (c *Conn) RTT() (time.Duration, error) {
	d, err := c.nc.RTT()
	return d, wrap(err, "ping")
}

// Flush waits until the server has taken all that was sent before.
func (c *Conn) Flush(ctx context.Context) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, connectTimeout)
		defer cancel()
	}
	return wrap(c.nc.FlushWithContext(ctx), "flush")
}

// Close delivers what has arrived, sends what was sent, closes the connection
// and waits for its goroutines and handlers, 2 s at most for what hangs. It must
// not be called from a handler.
func (c *Conn) Close() {
	if err := c.nc.Drain(); err != nil {
		c.nc.Close()
	}
	select {
	case <-c.closed:
	case <-time.After(2 * drainTimeout):
		c.nc.Close()
		<-c.closed
	}
	c.serving.Wait()
}

// wrap gives an error of the library its place in this package.
func wrap(err error, doing string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, nats.ErrReconnectBufExceeded), errors.Is(err, nats.ErrConnectionReconnecting),
		errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrDisconnected),
		errors.Is(err, nats.ErrConnectionDraining), errors.Is(err, nats.ErrStaleConnection):
		return fmt.Errorf("%w: %s: %w", ErrOffline, doing, err)
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, nats.ErrTimeout),
		errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: %s: %w", ErrNoAnswer, doing, err)
	}
	return fmt.Errorf("bus: %s: %w", doing, err)
}
