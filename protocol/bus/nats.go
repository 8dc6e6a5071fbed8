package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/internal/slowlink"
)

// natsLink is a Link over a connection to NATS that comes back by itself.
type natsLink struct {
	nc      *nats.Conn
	traffic Traffic
	log     *slog.Logger
	backlog int // bytes
	closed  chan struct{}
}

// dial tries to connect until it succeeds, is refused, or ctx is done.
func dial(ctx context.Context, o *Options, c *Conn) (*natsLink, error) {
	l := &natsLink{traffic: c.traffic, log: c.log, backlog: cmp.Or(o.Backlog, maxPending), closed: make(chan struct{})}
	d := &dialer{within: o.dialTimeout(), ping: o.ping(), source: o.TLS}
	if end, ok := ctx.Deadline(); ok {
		d.end.Store(&end)
	}
	opts := append(l.options(o), nats.Timeout(d.within), nats.SetCustomDialer(d), nats.CustomReconnectDelay(d.delay))
	for {
		nc, err := nats.Connect(strings.Join(o.URLs, ","), opts...)
		if err == nil {
			d.end.Store(nil)
			l.nc = nc
			return l, nil
		}
		if errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrSecureConnRequired) {
			return nil, fmt.Errorf("the NATS server at %s refuses the connection: %w", o.where(), err)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("no NATS server answers at %s: %w", o.where(), err)
		case <-time.After(max(reconnectWait, d.delay(0))):
		}
	}
}

// dialTimeout bounds one try to connect to one server, and each step of it: they take
// three round trips, and pings are to leave room for one.
func (o *Options) dialTimeout() time.Duration { return max(time.Second, 6*o.Ping) }

func (o *Options) ping() time.Duration { return cmp.Or(o.Ping, DefaultPing) }

// options returns the options of the library but for what has to do with its dialer.
func (l *natsLink) options(o *Options) []nats.Option {
	opts := []nats.Option{
		nats.Name(o.Name),
		nats.MaxReconnects(-1),
		nats.DontRandomize(),
		nats.IgnoreAuthErrorAbort(), // a server that refuses now may not, later
		nats.ReconnectBufSize(-1),
		nats.PingInterval(o.ping()),
		nats.MaxPingsOutstanding(math.MaxInt32), // see socket
		nats.SkipHostLookup(),                   // of all addresses of a host the dialer takes care
		nats.FlusherTimeout(writeTimeout),
		nats.ReconnectOnFlusherError(),
		nats.DrainTimeout(drainTimeout),
		nats.DisconnectErrHandler(l.lost),
		nats.ReconnectHandler(l.back),
		nats.ErrorHandler(l.failed),
		nats.ClosedHandler(func(*nats.Conn) { close(l.closed) }),
	}
	if o.Server != nil {
		opts = append(opts, inProcess(o.Server.s)...)
	}
	if o.Answers != "" {
		opts = append(opts, nats.CustomInboxPrefix(o.Answers))
	}
	return opts
}

// reconnectDelay is the pause before the servers are tried again, after so many times: it
// grows by a tenth of the first each time, so that in a long outage clients do not keep
// the servers busy, and come back at most a tenth of its time late.
func reconnectDelay(tries int) time.Duration {
	d := min(reconnectWait+time.Duration(tries)*reconnectWait/10, reconnectMost)
	return d/2 + rand.N(d/2)
}

// inProcess are the options of a connection to a server of this process. Between the two is
// no network that could be lost unseen, and a write ends when the server does: so there is
// no time after which one that is slow, on a busy machine, would be taken for lost.
func inProcess(s nats.InProcessConnProvider) []nats.Option {
	return []nats.Option{nats.InProcessServer(s), nats.FlusherTimeout(0)}
}

func (l *natsLink) lost(nc *nats.Conn, err error) {
	if err == nil && nc.IsClosed() || nc.IsDraining() {
		return
	}
	l.traffic.Disconnected()
	l.log.Warn("the connection to NATS is lost", "error", err)
}

func (l *natsLink) back(nc *nats.Conn) {
	l.traffic.Reconnected()
	l.log.Info("the connection to NATS is back", "url", nc.ConnectedUrlRedacted())
}

// failed logs what NATS reports on the side, such as dropped messages.
func (l *natsLink) failed(nc *nats.Conn, sub *nats.Subscription, err error) {
	if sub == nil && !nc.IsConnected() { // such as a coordinator that turns clients away
		l.log.Debug("a NATS server does not answer, or refuses", "error", err)
		return
	}
	subject := ""
	if sub != nil {
		subject = sub.Subject
	}
	l.log.Warn("nats", "error", err, "subject", subject)
}

// Publish implements Link.
func (l *natsLink) Publish(subject, reply string, data []byte) error {
	if reply == "" {
		return l.nc.Publish(subject, data)
	}
	return l.nc.PublishRequest(subject, reply, data)
}

// Subscribe implements Link.
func (l *natsLink) Subscribe(subject, queue string, f func(Message)) (closer, error) {
	sub, err := l.nc.QueueSubscribe(subject, queue, func(m *nats.Msg) { f(delivered(m)) })
	if err != nil {
		return nil, wrap(err, "subscribe to "+subject)
	}
	s := &natsSubscription{sub, make(chan struct{})}
	sub.SetClosedHandler(func(string) { close(s.done) })
	if err := sub.SetPendingLimits(backlogMessages, l.backlog); err != nil {
		return nil, fmt.Errorf("subscribe to %s: %w", subject, err)
	}
	if err := l.Flush(context.Background()); err != nil && l.Connected() {
		s.Close()
		return nil, err
	}
	return s, nil
}

// delivered turns NATS's "no responders" into Message.Nobody.
func delivered(m *nats.Msg) Message {
	out := Message{Subject: m.Subject, Reply: m.Reply, Data: m.Data}
	if len(m.Data) == 0 && m.Header.Get("Status") == "503" {
		out.Nobody = true
	}
	return out
}

type natsSubscription struct {
	sub  *nats.Subscription
	done chan struct{}
}

// bound sets another bound of the backlog, in bytes.
func (s *natsSubscription) bound(bytes int) {
	_ = s.sub.SetPendingLimits(backlogMessages, bytes) // an error says that it is closed
}

// Close implements closer.
func (s *natsSubscription) Close() {
	if err := s.sub.Unsubscribe(); err != nil {
		return // closed before, or with its connection
	}
	<-s.done
}

// Request implements Link.
func (l *natsLink) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	m, err := l.nc.RequestWithContext(ctx, subject, data)
	if err != nil {
		return nil, err
	}
	return m.Data, nil
}

// Flush implements Link.
func (l *natsLink) Flush(ctx context.Context) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, connectTimeout)
		defer cancel()
	}
	return wrap(l.nc.FlushWithContext(ctx), "flush")
}

// MaxPayload implements Link.
func (l *natsLink) MaxPayload() int { return int(l.nc.MaxPayload()) }

// Connected implements Link.
func (l *natsLink) Connected() bool { return l.nc.IsConnected() }

// ServerName implements Link.
func (l *natsLink) ServerName() string { return l.nc.ConnectedServerName() }

// LocalAddress is Conn.LocalAddress.
func (l *natsLink) LocalAddress() string { return l.nc.LocalAddr() }

// RTT implements Link.
func (l *natsLink) RTT(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	err := l.Flush(ctx)
	return time.Since(began), err
}

// Close implements Link; what hangs is given 2 s.
func (l *natsLink) Close() {
	if err := l.nc.Drain(); err != nil {
		l.nc.Close()
	}
	select {
	case <-l.closed:
	case <-time.After(2 * drainTimeout):
		l.nc.Close()
		<-l.closed
	}
}

// wrap gives an error of the library or of a link its place in this package.
func wrap(err error, doing string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrOffline), errors.Is(err, ErrNoAnswer):
		return fmt.Errorf("%w: %s", err, doing)
	case errors.Is(err, nats.ErrReconnectBufExceeded), errors.Is(err, nats.ErrConnectionReconnecting),
		errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrDisconnected),
		errors.Is(err, nats.ErrConnectionDraining), errors.Is(err, nats.ErrStaleConnection):
		return fmt.Errorf("%w: %s: %w", ErrOffline, doing, err)
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, nats.ErrTimeout),
		errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: %s: %w", ErrNoAnswer, doing, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// dialer makes the connections of clients, with TLS if it has a source. Bytes that come are a sign of life of the
// server, and bytes that it takes another: over a thin link a pong waits behind messages,
// and a message takes longer than a server may be silent.
type dialer struct {
	within time.Duration             // for a connection to be made
	ping   time.Duration             // between pings; each ping has an answer
	source *certs.Source             // nil: in the clear
	end    atomic.Pointer[time.Time] // of all tries to make the first one; nil: it is made, or they have none

	last    net.Conn      // the last connection that was made; the library calls Dial in one goroutine at a time
	refused atomic.Uint32 // servers in a row that have refused the certificate
}

// refusedMost is the longest pause between two tries if the servers refuse the certificate.
const refusedMost = 10 * time.Second

// delay returns the pause before the servers are tried again, after so many times. Only an admin
// can change that servers refuse a certificate, so these pauses are longer.
func (d *dialer) delay(tries int) time.Duration {
	return max(reconnectDelay(tries), min(time.Duration(d.refused.Load())*time.Second, refusedMost))
}

// Dial implements nats.CustomDialer. With TLS it returns after the handshake, before the
// server says anything. It closes the connection before: the library keeps one, and leaves it
// open if the server refuses it.
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	if d.last != nil {
		d.last.Close()
		d.last = nil
	}
	ctx, cancel := context.WithDeadline(context.Background(), d.earlier(time.Now().Add(d.within)))
	defer cancel()
	c, err := (&certs.Dialer{Source: d.source, Roles: []certs.Role{certs.Coordinator}, Dial: d.dialClear}).
		DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if d.source != nil {
		c = &judged{c, d}
	}
	d.last = c
	return c, nil
}

// judged is a connection with TLS. Its first Read says whether the server refuses the certificate.
type judged struct {
	net.Conn
	dialer *dialer
}

// Read implements io.Reader.
func (j *judged) Read(p []byte) (int, error) {
	n, err := j.Conn.Read(p)
	switch {
	case n > 0:
		j.dialer.refused.Store(0)
	case certs.Refuses(err):
		j.dialer.refused.Add(1)
	}
	return n, err
}

// dialClear makes a connection in the clear.
func (d *dialer) dialClear(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &socket{Conn: slowlink.Conn{Conn: c}, dialer: d}, nil
}

// SkipTLSHandshake tells the library that Dial has done the handshake, if a server asks for TLS.
func (d *dialer) SkipTLSHandshake() bool { return d.source != nil }

// earlier returns a time, or the end where that is earlier.
func (d *dialer) earlier(t time.Time) time.Time {
	if end := d.end.Load(); end != nil && end.Before(t) {
		return *end
	}
	return t
}

// socket is a connection to a server. One goroutine reads at a time, and one writes.
type socket struct {
	slowlink.Conn
	dialer *dialer
	bound  atomic.Bool // by a deadline of its user
}

// lookAgain is how many of the pings that may be missed are left for another look where
// nothing came: a process that did not run meanwhile finds what came in the second one.
const lookAgain = 2

// Read implements io.Reader. It fails where nothing comes for the time of one ping more than
// may be missed.
func (s *socket) Read(p []byte) (n int, err error) {
	for _, pings := range []time.Duration{pingsOut + 1 - lookAgain, lookAgain} {
		if s.bound.Load() {
			return s.Conn.Read(p)
		}
		if err := s.Conn.SetReadDeadline(time.Now().Add(pings * s.dialer.ping)); err != nil {
			return 0, err
		}
		if n, err = s.Conn.Read(p); n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
	}
	return n, fmt.Errorf("the NATS server sends nothing: %w", err)
}

// SetDeadline implements net.Conn.
func (s *socket) SetDeadline(t time.Time) error {
	if !t.IsZero() {
		t = s.dialer.earlier(t)
	}
	return errors.Join(s.SetReadDeadline(t), s.SetWriteDeadline(t))
}

// SetReadDeadline implements net.Conn.
func (s *socket) SetReadDeadline(t time.Time) error {
	s.bound.Store(!t.IsZero())
	return s.Conn.SetReadDeadline(t)
}
