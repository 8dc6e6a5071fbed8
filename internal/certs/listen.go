package certs

import (
	"container/list"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// Terms say which connections a listener accepts.
type Terms struct {
	Port Port
	// Late is true if the handshake accepts every certificate, and none. Conn.Peer then says
	// who connected, and the caller decides.
	Late   bool
	Within time.Duration // time for the handshake
	Log    *slog.Logger
}

const (
	// maxHandshakes bounds the handshakes of a listener at a time. If one more begins, the oldest
	// handshake of the host with the most handshakes is ended.
	maxHandshakes = 256
	maxOfHost     = 1024 // connections of a host to a listener
)

// listener accepts connections with TLS. Handshakes run at the same time, so a slow one
// does not delay others.
type listener struct {
	net.Listener
	source *Source
	terms  Terms
	config *tls.Config

	once     sync.Once
	accepted chan accepted
	closed   chan struct{}
	work     sync.WaitGroup

	mu      sync.Mutex
	ended   bool
	waiting *list.List     // of *below in the handshake, the oldest first
	open    map[string]int // number of connections of each host

	told      map[string]bool // hosts and reasons that the log has a line about since toldSince
	toldSince time.Time
}

// accepted is what Accept returns.
type accepted struct {
	conn net.Conn
	err  error
}

// Listen returns a listener that accepts connections of l with TLS, if source is not nil.
// With a nil source it returns l. The connections are of type *Conn.
func Listen(l net.Listener, source *Source, terms Terms) net.Listener {
	if source == nil {
		return l
	}
	if terms.Log == nil {
		terms.Log = slog.New(slog.DiscardHandler)
	}
	return &listener{
		Listener: l, source: source, terms: terms, config: source.config(x509.ExtKeyUsageClientAuth, terms.Port.Roles,
			!terms.Late),
		accepted: make(chan accepted), closed: make(chan struct{}), waiting: list.New(), open: make(map[string]int),
	}
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	l.once.Do(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if !l.ended {
			l.work.Go(l.run)
		}
	})
	select {
	case a := <-l.accepted:
		return a.conn, a.err
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// run accepts connections until the listener is closed.
func (l *listener) run() {
	for {
		c, err := l.Listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			l.hand(accepted{err: err})
			continue
		}
		if at := l.enter(c); at != nil {
			l.work.Go(func() { l.greet(at) })
		}
	}
}

// hand gives a connection or an error to Accept.
func (l *listener) hand(a accepted) {
	select {
	case l.accepted <- a:
	case <-l.closed:
		if a.conn != nil {
			a.conn.Close()
		}
	}
}

// enter counts a connection. It returns nil if the listener is closed or the host has too many.
func (l *listener) enter(c net.Conn) *list.Element {
	host := hostOf(c)
	l.mu.Lock()
	ended, full := l.ended, l.open[host] >= maxOfHost
	if ended || full {
		l.mu.Unlock()
		c.Close()
		if !ended && l.tells(host, "connections") {
			l.terms.Log.Warn("a connection was refused", "from", host, "port", l.terms.Port.Name, "reason",
				fmt.Sprintf("the host has %d connections already", maxOfHost))
		}
		return nil
	}
	defer l.mu.Unlock()
	if l.waiting.Len() >= maxHandshakes {
		l.evict()
	}
	l.open[host]++
	return l.waiting.PushBack(&below{Conn: c, of: &l.source.open, host: host, closed: func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.open[host]--; l.open[host] == 0 {
			delete(l.open, host)
		}
	}})
}

// evict ends the oldest handshake of the host with the most handshakes. The lock is held.
func (l *listener) evict() {
	count := make(map[string]int)
	most := ""
	for e := l.waiting.Front(); e != nil; e = e.Next() {
		host := e.Value.(*below).host
		if count[host]++; count[host] > count[most] {
			most = host
		}
	}
	for e := l.waiting.Front(); e != nil; e = e.Next() {
		if b := e.Value.(*below); b.host == most {
			b.Conn.Close() // the handshake fails, and closes b
			l.waiting.Remove(e)
			return
		}
	}
}

// hostOf returns the host of the other side of a connection.
func hostOf(c net.Conn) string {
	address := c.RemoteAddr().String()
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}

// greet makes the handshake of a connection.
func (l *listener) greet(at *list.Element) {
	ctx, cancel := context.WithTimeout(context.Background(), l.terms.Within)
	defer cancel()
	under := at.Value.(*below)
	secure := tls.Server(under, l.config)
	err := secure.HandshakeContext(ctx)
	l.mu.Lock()
	l.waiting.Remove(at)
	l.mu.Unlock()
	if err != nil {
		l.refuse(under, err)
		return
	}
	peer := &Peer{source: l.source, shown: &shown{list: secure.ConnectionState().PeerCertificates,
		use: x509.ExtKeyUsageClientAuth, roles: l.terms.Port.Roles}}
	if len(peer.list) > 0 {
		peer.Serial = Serial(peer.list[0])
	}
	if peer.Identity, peer.first = l.source.verify(peer.shown); peer.first == nil {
		under.keep(peer.shown)
	}
	l.hand(accepted{conn: &Conn{secure, peer}})
}

// plainAnswer is what a server of Go answers to a request in the clear.
const plainAnswer = "HTTP/1.0 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\nClient sent an " +
	"HTTP request to an HTTPS server.\n"

// methods begin a request of HTTP.
var methods = []string{"GET /", "HEAD ", "POST ", "PUT /", "PATCH", "DELET", "OPTIO"}

// refuse ends a connection after a handshake that failed.
func (l *listener) refuse(c *below, err error) {
	defer c.Close()
	select {
	case <-l.closed:
		return
	default:
	}
	var clear tls.RecordHeaderError
	if errors.As(err, &clear) && clear.Conn != nil {
		if slices.Contains(methods, string(clear.RecordHeader[:])) {
			_, _ = io.WriteString(c, plainAnswer) // an error: the client sees that the connection ends
		}
		if l.tells(c.host, "clear") {
			l.terms.Log.Warn("a process without TLS was refused; start it with --tls-dir", "from", c.RemoteAddr().String(),
				"port", l.terms.Port.Name)
		}
		return
	}
	var peer *PeerError
	if errors.As(err, &peer) {
		if l.tells(c.host, peer.Found) {
			l.terms.Log.Warn("a connection was refused", "from", c.RemoteAddr().String(), "port", l.terms.Port.Name,
				"reason", err)
		}
		return
	}
	l.terms.Log.Debug("a handshake of TLS failed", "from", c.RemoteAddr().String(), "port", l.terms.Port.Name,
		"reason", err)
}

const (
	tellEvery = time.Minute
	maxTold   = 256 // hosts and reasons that a listener remembers
)

// tells reports whether the log gets a line about a refused connection: one a minute for each
// host and reason, and at most maxTold in a minute.
func (l *listener) tells(host, reason string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); now.Sub(l.toldSince) >= tellEvery {
		l.told, l.toldSince = make(map[string]bool), now
	}
	key := host + " " + reason
	if l.told[key] || len(l.told) >= maxTold {
		return false
	}
	l.told[key] = true
	return true
}

// Close implements net.Listener. It ends the handshakes, and waits for them.
func (l *listener) Close() error {
	l.mu.Lock()
	if l.ended {
		l.mu.Unlock()
		return net.ErrClosed
	}
	l.ended = true
	close(l.closed)
	for e := l.waiting.Front(); e != nil; e = e.Next() {
		e.Value.(*below).Conn.Close()
	}
	l.mu.Unlock()
	err := l.Listener.Close()
	l.work.Wait()
	return err
}

// Peer is who made a connection.
type Peer struct {
	Identity        // empty if the certificate was not trusted at the handshake
	Serial   string // serial number of the certificate, in hexadecimal digits

	source *Source
	*shown
	first error // why the certificate was refused at the handshake; nil: it was trusted
}

// Refused returns why the certificate is not trusted, a *PeerError, or nil. The answer changes if its
// authority is taken away, or it expires, or it is revoked.
func (p *Peer) Refused() error {
	if p.first != nil {
		return p.first
	}
	_, err := p.source.verify(p.shown)
	return err
}

// Conn is an accepted connection after the handshake.
type Conn struct {
	*tls.Conn
	peer *Peer
}

// Peer returns who connected.
func (c *Conn) Peer() *Peer { return c.peer }

// below is a connection below TLS. Once it is kept, it can be cut.
type below struct {
	net.Conn
	of     *connections
	host   string // of the other side, if a listener has accepted the connection
	closed func() // called once, when the connection is closed; nil: nothing to do

	mu    sync.Mutex
	ended bool
	kept  *connection
}

// keep is called after the handshake with what the other side has shown.
func (b *below) keep(p *shown) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended || b.kept != nil {
		return
	}
	b.kept = &connection{shown: p, end: func() { b.Conn.Close() }}
	b.of.add(b.kept)
}

// Close implements io.Closer.
func (b *below) Close() error {
	b.mu.Lock()
	first := !b.ended
	b.ended = true
	kept := b.kept
	b.mu.Unlock()
	if first && b.closed != nil {
		b.closed()
	}
	if kept != nil {
		b.of.remove(kept)
	}
	return b.Conn.Close()
}

// Dialer connects to processes of a cluster: with TLS, or in the clear if Source is nil.
type Dialer struct {
	Source *Source
	Roles  []Role // the process that answers has one of them
	// Dial makes the connection below TLS; nil: a net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// DialContext connects to an address. It returns after the handshake.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	dial := d.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	c, err := dial(ctx, network, address)
	if err != nil || d.Source == nil {
		return c, err
	}
	under := &below{Conn: c, of: &d.Source.open}
	const use = x509.ExtKeyUsageServerAuth
	secure := tls.Client(under, d.Source.config(use, d.Roles, true))
	if err := secure.HandshakeContext(ctx); err != nil {
		c.Close()
		return nil, d.Source.explain(address, err)
	}
	under.keep(&shown{list: secure.ConnectionState().PeerCertificates, use: use, roles: d.Roles})
	return &dialled{secure, d.Source, address}, nil
}

// NameOf returns the name in the certificate of the other side. ok is false if the connection is
// in the clear.
func NameOf(c net.Conn) (name string, ok bool) {
	var list []*x509.Certificate
	switch c := c.(type) {
	case *Conn:
		list = c.ConnectionState().PeerCertificates
	case *dialled:
		list = c.ConnectionState().PeerCertificates
	}
	if len(list) == 0 {
		return "", false
	}
	id, err := IdentityOf(list[0])
	return id.Name, err == nil
}

// dialled is a connection that this process made. The other side refuses a certificate after
// the handshake, so the first Read has that error.
type dialled struct {
	*tls.Conn
	source  *Source
	address string
}

// Read implements io.Reader.
func (c *dialled) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if Refuses(err) {
		err = c.source.explain(c.address, err)
	}
	return n, err
}

// Refuses reports whether err says that the other side has ended a connection with an alert of TLS,
// as a server does that refuses a certificate.
func Refuses(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}

// ErrClear is wrapped by the error about a server that does not speak TLS.
var ErrClear = errors.New("the server uses no TLS, but this process does; the server needs certificates too: " +
	"coppice coordinator --tls-dir")

// explain says what to do about an error of a handshake.
func (s *Source) explain(address string, err error) error {
	var clear tls.RecordHeaderError
	var peer *PeerError
	switch {
	case errors.As(err, &clear):
		return fmt.Errorf("%s: %w", address, ErrClear)
	case errors.As(err, &peer):
		return fmt.Errorf("%s: %w", address, err)
	case Refuses(err) && s.dir == "":
		return fmt.Errorf("%s: the server refuses a process without a certificate: %w", address, err)
	case Refuses(err):
		id, file := s.Identity(), filepath.Join(s.dir, CertFile)
		return fmt.Errorf("%s: the server refuses the certificate of this process, %s in %s, valid until %s; the log of "+
			"the server says why: %w",
			address, id, file, s.Expires().Format(time.RFC3339), err)
	}
	return fmt.Errorf("%s: the handshake of TLS failed: %w", address, err)
}

// ErrExposed is wrapped by the error about an address in the clear that other machines reach.
var ErrExposed = errors.New("other machines reach this address, so it needs certificates: give --tls-dir, see " +
	"coppice certs --help; or allow everybody everything with --insecure")

// Exposed returns an error about the first address that other machines reach, or nil.
func Exposed(addresses ...net.Addr) error {
	for _, a := range addresses {
		if tcp, ok := a.(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
			return fmt.Errorf("%s: %w", a, ErrExposed)
		}
	}
	return nil
}

// ExposedURLs is Exposed for the hosts of URLs to connect to. A name counts as a loopback
// address if all of its addresses do.
func ExposedURLs(ctx context.Context, urls ...string) error {
	for _, text := range urls {
		u, err := url.Parse(text)
		if err != nil {
			continue // who connects says what is wrong
		}
		found, err := net.DefaultResolver.LookupIPAddr(ctx, u.Hostname())
		away := func(a net.IPAddr) bool { return !a.IP.IsLoopback() }
		if err != nil || slices.ContainsFunc(found, away) {
			return fmt.Errorf("%s: %w", text, ErrExposed)
		}
	}
	return nil
}

// Mutual returns the configuration of both sides of a connection, for a library that dials
// and listens. CutInvalid ends connections that the library has accepted. OnDrop is for the
// connections that it has made.
func (s *Source) Mutual(p Port) *tls.Config {
	const use = x509.ExtKeyUsageAny
	config := s.config(use, p.Roles, true)
	accepts, verify := config.Clone(), config.VerifyConnection
	config.VerifyConnection = func(state tls.ConnectionState) error {
		err := verify(state)
		if err == nil {
			s.open.addMade(&shown{list: state.PeerCertificates, use: use, roles: p.Roles}, func() {
				if f := s.drop.Load(); f != nil {
					(*f)()
				}
			})
		}
		return err
	}
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		one, c := accepts.Clone(), hello.Conn
		one.VerifyConnection = func(state tls.ConnectionState) error {
			err := verify(state)
			if err == nil {
				s.open.add(&connection{
					shown: &shown{list: state.PeerCertificates, use: use, roles: p.Roles},
					end:   func() { c.Close() }, over: func() bool { return closed(c) },
				})
			}
			return err
		}
		return one, nil
	}
	return config
}

// OnDrop sets a function that ends the connections that a library has made with the configuration
// of Mutual. CutInvalid calls it if the certificate of one of them is not trusted any more.
func (s *Source) OnDrop(f func()) { s.drop.Store(&f) }
