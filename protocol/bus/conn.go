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
	// backlogMessages is the greatest backlog of a subscription, as Options.Backlog.
	backlogMessages = 1 << 20
	// requestBacklog is that of a subscription that answers requests, in bytes.
	requestBacklog = 4 << 20
)

// Options describe a connection.
type Options struct {
	URLs    []string // of NATS servers, any of which will do; tried in this order
	Server  *Server  // connect to this server in-process instead
	Name    string   // shown in the server's log
	Answers string   // the subject below which answers to requests come; default: NATS's own
	// MayAnswer says of the subject that a request names for its answer whether it is
	// answered there; nil: it is. A request that it is not is dropped.
	MayAnswer func(reply string) bool
	Ping      time.Duration // default DefaultPing
	Traffic   Traffic       // default: not counted
	Log       *slog.Logger  // default: nothing is logged
	// Received bounds the bytes of messages that came and are not used yet (see Room), and
	// Backlog those that a subscription has not looked at; beyond it messages are dropped.
	// Defaults: 2 GiB each.
	Received, Backlog int
}

// Conn is a connection to NATS that comes back by itself, for ever. All methods
// may be called concurrently.
type Conn struct {
	link    Link
	traffic Traffic
	log     *slog.Logger
	sender  uint64 // names this connection in fragments
	room    *protocol.Room
	backlog int
	server  *Server                 // the embedded one that it goes to, if it is
	answers func(reply string) bool // as Options.MayAnswer
	windows windows                 // of pulls of blobs

	long    chan struct{} // holds one while the fragments of a long message are sent: a receiver joins one of a sender at a time
	message atomic.Uint64
	serving sync.WaitGroup // handlers of Serve
}

func newConn(o *Options) *Conn {
	c := &Conn{traffic: o.Traffic, log: o.Log, sender: rand.Uint64(), room: protocol.NewRoom(o.Received), backlog: o.Backlog, server: o.Server, answers: o.MayAnswer, long: make(chan struct{}, 1)}
	if c.answers == nil {
		c.answers = func(string) bool { return true }
	}
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
		return errors.New("the URL of a NATS server is missing")
	}
	for _, s := range o.URLs {
		u, err := url.Parse(s)
		if err != nil || u.Host == "" {
			return fmt.Errorf("%q is not the URL of a NATS server: want nats://host:port", s)
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

// Room returns what bounds the bytes of messages that came and are not used yet: the
// fragments of unfinished ones, and what handlers take of it.
func (c *Conn) Room() *protocol.Room { return c.room }

// LocalAddress returns the address (host:port) from which the connection goes to its
// server, empty where there is none.
func (c *Conn) LocalAddress() string {
	if l, ok := c.link.(interface{ LocalAddress() string }); ok {
		return l.LocalAddress()
	}
	return ""
}

// RTT measures the round trip to the server behind what was published before, for 5 s at
// most where ctx has no deadline.
func (c *Conn) RTT(ctx context.Context) (time.Duration, error) { return c.link.RTT(ctx) }

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
