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

	"github.com/coppice-ldl/coppice/protocol"
)

const (
	// connectTimeout bounds Connect where its context has no deadline.
	connectTimeout = 5 * time.Second
	// reconnectWait is the greatest pause between the first tries to reconnect, and
	// reconnectMost between any.
	reconnectWait = protocol.ReconnectWait
	reconnectMost = protocol.ReconnectMost
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
	URLs    []string      // of NATS servers, any of which will do; tried in this order
	Server  *Server       // connect to this server in-process instead
	Name    string        // shown in the server's log
	Ping    time.Duration // default DefaultPing
	Traffic Traffic       // default: not counted
	Log     *slog.Logger  // default: nothing is logged
}

// Conn is a connection to NATS that comes back by itself, for ever. All methods
// may be called concurrently.
type Conn struct {
	link    Link
	traffic Traffic
	log     *slog.Logger
	sender  uint64 // names this connection in fragments

	mu      sync.Mutex // held while the fragments of one message are sent
	message atomic.Uint64
	serving sync.WaitGroup // handlers of Serve
}

func newConn(o *Options) *Conn {
	c := &Conn{traffic: o.Traffic, log: o.Log, sender: rand.Uint64()}
	if c.traffic == nil {
		c.traffic = uncounted{}
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Connect connects to a server. It tries until ctx is done (5 s where ctx has no
// deadline), then says in one line who did not answer.
func Connect(ctx context.Context, o Options) (*Conn, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, connectTimeout)
		defer cancel()
	}
	c := newConn(&o)
	link, err := dial(ctx, &o, c)
	if err != nil {
		return nil, err
	}
	c.link = link
	return c, nil
}

func (o *Options) check() error {
	if o.Server == nil && len(o.URLs) == 0 {
		return errors.New("no URL of a NATS server")
	}
	for _, s := range o.URLs {
		u, err := url.Parse(s)
		if err != nil || u.Host == "" {
			return fmt.Errorf("%q is not the URL of a NATS server: nats://host:port is", s)
		}
	}
	return nil
}

func (o *Options) where() string {
	if o.Server != nil {
		return "the embedded server"
	}
	return strings.Join(o.URLs, ", ")
}

// Connected reports whether a server answers now.
func (c *Conn) Connected() bool { return c.link.Connected() }

// ServerName returns the name of the server that the connection goes to, empty
// while there is none.
func (c *Conn) ServerName() string { return c.link.ServerName() }

// LocalAddress returns the address (host:port) from which the connection goes to its
// server, empty where there is none.
func (c *Conn) LocalAddress() string {
	if l, ok := c.link.(interface{ LocalAddress() string }); ok {
		return l.LocalAddress()
	}
	return ""
}

// RTT measures the round trip to the server.
func (c *Conn) RTT() (time.Duration, error) { return c.link.RTT() }

// Flush waits until the server has taken all that was sent before, for 5 s at
// most where ctx has no deadline.
func (c *Conn) Flush(ctx context.Context) error { return c.link.Flush(ctx) }

// Close delivers what has arrived, sends what was sent, closes the connection
// and waits for its goroutines and handlers, 2 s at most for what hangs. It must
// not be called from a handler.
func (c *Conn) Close() {
	c.link.Close()
	c.serving.Wait()
}
