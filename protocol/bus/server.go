package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/internal/slowlink"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

const (
	// maxPayload is the greatest NATS message of an embedded server, in bytes;
	// what is larger travels in fragments.
	// Each connection may take as much memory while it announces one.
	maxPayload = 1 << 20
	// maxPending is the default of ServerOptions.Pending.
	maxPending = 2 * protocol.MaxMessage
	// writeDeadline is ServerOptions.deadline, if it is 0.
	writeDeadline = 5 * time.Second
	// maxSubscriptions bounds those of a client. Workers have four, coordinators a dozen.
	maxSubscriptions = 64
	// maxTokens bounds the words of a subject.
	maxTokens = 16
	// ownClients is the number of connections of this process. They have room if all of
	// ServerOptions.Connections are taken, because moreClients connect only until they have introduced themselves.
	ownClients, moreClients = 1, 32
	// startTimeout bounds the start of an embedded server.
	startTimeout = 10 * time.Second
	// anyPort asks for a port that the system chooses.
	anyPort = natsserver.RANDOM_PORT
)

// ServerOptions describe an embedded NATS server.
type ServerOptions struct {
	Name string // unique in the NATS cluster
	Host string // to listen on; empty for all interfaces
	// ClientPort takes connections of clients; 0 or -1 for any free port.
	ClientPort int
	// RoutePort takes connections of the other servers; -1 for any free port. With 0
	// none is opened, unless Routes are given.
	RoutePort int
	RouteHost string   // to listen on for routes; empty for Host
	Routes    []string // URLs of the other servers' route ports: nats://host:port
	Cluster   string   // name of the NATS cluster, the same on each server
	// Advertise is the host:port by which clients hear of this server from
	// others; empty for the address listened on.
	Advertise string
	// AdvertiseRoutes is the same for routes.
	AdvertiseRoutes string

	Ping time.Duration // default DefaultPing
	Log  *slog.Logger  // default: nothing is logged

	// Pending bounds the bytes that wait for a client to read them; 0: 2 GiB. While as much waits
	// for all clients, long messages wait to be sent. Connections bounds the clients of other
	// processes; 0: no bound.
	Pending     int64
	Connections int
	// deadline is how long a client may read nothing of what is to be sent to it before NATS closes
	// its connection; 0: writeDeadline. A test process can stand still for longer than writeDeadline.
	deadline time.Duration
	// Closed is true if clients of other processes are refused until Admit.
	Closed bool

	// TLS has the certificates of this server; nil: all connections are in the clear. Clients
	// and routes then have Handshake to identify themselves.
	TLS       *certs.Source
	Handshake time.Duration

	// Rights returns the rights of a client of another process; nil: all. Role and name come from its
	// certificate. In the clear they are worker and client, the stated name.
	Rights func(role rights.Role, name, client string) rights.NATS
}

// Server is an embedded NATS server, core only: nothing is stored.
type Server struct {
	s         *natsserver.Server
	fatal     chan string
	admission *admission
	flow      *flow

	log  *slog.Logger
	mu   sync.Mutex
	opts *natsserver.Options // as they were given, with the routes of now
}

// StartServer starts an embedded server and returns once it takes connections.
// An address that is taken is named in the error.
func StartServer(o ServerOptions) (*Server, error) {
	opts, err := o.nats()
	if err != nil {
		return nil, err
	}
	if err := free(opts.Cluster.Host, opts.Cluster.Port); err != nil {
		return nil, &ListenError{Routes: true, Address: place(opts.Cluster.Host, opts.Cluster.Port), Err: err}
	}
	s := &Server{fatal: make(chan string, 8), flow: newFlow(opts.MaxPending, opts.WriteDeadline)}
	s.admission = &admission{secure: o.TLS != nil, most: o.Connections, rights: o.Rights}
	s.admission.closed.Store(o.Closed)
	opts.CustomClientAuthentication, opts.AuthTimeout = s.admission, authSeconds
	s.opts = opts.Clone() // the library changes its own
	if s.s, err = natsserver.NewServer(opts); err != nil {
		return nil, fmt.Errorf("NATS server: %w", err)
	}
	s.admission.server = s.s
	if o.TLS != nil {
		err = o.listen(s.s, place(opts.Host, opts.Port))
	} else if err = free(opts.Host, opts.Port); err != nil {
		err = &ListenError{Address: place(opts.Host, opts.Port), Err: err}
	}
	if err != nil {
		return nil, err
	}
	s.log = o.logger()
	if o.TLS != nil {
		o.TLS.OnDrop(s.remakeRoutes)
	}
	s.s.SetLoggerV2(&serverLog{log: o.logger(), fatal: s.fatal}, false, false, false)
	s.s.Start()
	if err := s.ready(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (o *ServerOptions) logger() *slog.Logger {
	if o.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return o.Log
}

// nats returns the options of the library.
func (o *ServerOptions) nats() (*natsserver.Options, error) {
	ping := o.Ping
	if ping == 0 {
		ping = DefaultPing
	}
	most := math.MaxInt32
	if o.Connections > 0 {
		most = o.Connections + ownClients + moreClients
	}
	opts := &natsserver.Options{
		ServerName: o.Name, Host: o.Host, Port: port(o.ClientPort), ClientAdvertise: o.Advertise,
		NoSigs: true, MaxPayload: maxPayload, MaxPending: cmp.Or(o.Pending, maxPending), MaxConn: most,
		WriteDeadline: cmp.Or(o.deadline, writeDeadline), WriteTimeout: natsserver.WriteTimeoutPolicyRetry,
		MaxSubs: maxSubscriptions, MaxSubTokens: maxTokens,
		PingInterval: ping, MaxPingsOut: pingsOut, DisableShortFirstPing: true,
	}
	if len(o.Routes) == 0 && o.RoutePort == 0 {
		return opts, nil
	}
	opts.Cluster = natsserver.ClusterOpts{
		Name: o.Cluster, Host: cmp.Or(o.RouteHost, o.Host), Port: port(o.RoutePort), Advertise: o.AdvertiseRoutes,
		PingInterval: ping, MaxPingsOut: pingsOut,
		PoolSize: -1, // one connection to each other server: one account has all traffic, and each connection has its pings
	}
	if o.TLS != nil {
		opts.Cluster.TLSConfig, opts.Cluster.TLSTimeout = o.TLS.Mutual(certs.PortRoutes), o.Handshake.Seconds()
	}
	var err error
	opts.Routes, err = routeURLs(o.Routes)
	return opts, err
}

func port(p int) int {
	if p == 0 {
		return anyPort
	}
	return p
}

// ListenError is the error of a server that cannot listen.
type ListenError struct {
	Routes  bool   // for routes; else for clients
	Address string // HOST:PORT
	Err     error
}

func (e *ListenError) Error() string {
	what := "clients"
	if e.Routes {
		what = "routes"
	}
	return fmt.Sprintf("cannot listen on %s for NATS %s: %v", e.Address, what, e.Err)
}

// Unwrap lets errors.Is find what the system said.
func (e *ListenError) Unwrap() error { return e.Err }

func place(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(max(0, port))) }

// bindTime is how long bind waits for an address that is in use. A child process has a copy of each listener until it
// runs its program, so the address of a listener that was just closed may still be in use.
const bindTime = time.Second

// bind listens on an address.
func bind(address string) (net.Listener, error) {
	config := net.ListenConfig{KeepAlive: -1} // NATS has its own pings
	for end := time.Now().Add(bindTime); ; time.Sleep(10 * time.Millisecond) {
		l, err := config.Listen(context.Background(), "tcp", address)
		if !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(end) {
			return l, err
		}
	}
}

// free reports an address that cannot be bound. NATS itself would only log it.
func free(host string, port int) error {
	if port <= 0 {
		return nil
	}
	l, err := bind(place(host, port))
	if err != nil {
		return err
	}
	return l.Close()
}

// ready waits until the server takes connections.
func (s *Server) ready() error {
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for end := time.Now().Add(startTimeout); time.Now().Before(end); {
		if s.s.ReadyForConnections(time.Millisecond) {
			return nil
		}
		select {
		case text := <-s.fatal:
			return fmt.Errorf("NATS server: %s", text)
		case <-poll.C:
		}
	}
	return fmt.Errorf("the NATS server was not ready within %v", startTimeout)
}

// ClientURL returns the URL for clients on this machine.
func (s *Server) ClientURL() string { return localURL(s.s.Addr()) }

// RouteURL returns the URL for routes from this machine, empty where the server
// takes none.
func (s *Server) RouteURL() string {
	a := s.s.ClusterAddr()
	if a == nil {
		return ""
	}
	return localURL(a)
}

// ClientPort returns the port that clients connect to.
func (s *Server) ClientPort() int { return s.s.Addr().(*net.TCPAddr).Port }

// Routes returns the names of the other servers that this one is connected to in both
// directions: they have answered a ping. Over a connection that takes nothing to the
// other side, routes are made again and again and look whole each time.
func (s *Server) Routes() (names []string) {
	v, err := s.s.Routez(nil)
	if err != nil {
		return nil
	}
	for _, r := range v.Routes {
		if rtt, err := time.ParseDuration(r.RTT); err == nil && rtt > 0 && !slices.Contains(names, r.RemoteName) {
			names = append(names, r.RemoteName)
		}
	}
	return names
}

// localURL replaces the unspecified address by the loopback one.
func localURL(a net.Addr) string {
	t := a.(*net.TCPAddr)
	ip := t.IP
	if ip == nil || ip.IsUnspecified() {
		ip = net.IPv4(127, 0, 0, 1)
	}
	return "nats://" + net.JoinHostPort(ip.String(), strconv.Itoa(t.Port))
}

// Close stops the server and waits until it has.
func (s *Server) Close() {
	s.s.Shutdown()
	s.s.WaitForShutdown()
}

// authSeconds is how long a client may take to introduce itself.
const authSeconds = 3

// admission accepts clients, or only connections of this process, and gives them their rights.
type admission struct {
	server  *natsserver.Server
	secure  bool                                                    // true if clients have certificates
	most    int                                                     // clients of other processes; 0: no bound
	rights  func(role rights.Role, name, client string) rights.NATS // nil: all
	closed  atomic.Bool
	refused atomic.Uint64 // clients beyond most
}

// Check implements natsserver.Authentication. The connection of a client with a certificate
// ends with the certificate.
func (a *admission) Check(c natsserver.ClientAuthentication) bool {
	if from := c.RemoteAddress(); from != nil && from.Network() == "pipe" { // in-process
		return true
	}
	client := c.GetOpts().Name
	id, end := certs.Identity{Role: certs.Worker, Name: client}, time.Time{} // in the clear
	if a.secure {
		state := c.GetTLSConnectionState()
		if state == nil || len(state.PeerCertificates) == 0 {
			return false
		}
		var err error
		if id, err = certs.IdentityOf(state.PeerCertificates[0]); err != nil {
			return false
		}
		if end = state.PeerCertificates[0].NotAfter; !end.After(time.Now()) {
			return false
		}
	}
	if a.closed.Load() || !named(id, client) {
		return false
	}
	if a.most > 0 && a.server.NumClients() > a.most+ownClients {
		a.refused.Add(1)
		return false
	}
	user := &natsserver.User{ConnectionDeadline: end}
	if a.rights != nil {
		user.Permissions = Permissions(a.rights(rights.Role(id.Role), id.Name, client))
	}
	c.RegisterUser(user)
	return true
}

// Permissions returns rights as the permissions of a user of a NATS server.
func Permissions(r rights.NATS) *natsserver.Permissions {
	only := func(subjects []string) *natsserver.SubjectPermission {
		if len(subjects) == 0 { // an empty list would permit all
			return &natsserver.SubjectPermission{Deny: []string{">"}}
		}
		return &natsserver.SubjectPermission{Allow: subjects}
	}
	p := &natsserver.Permissions{Publish: only(r.Publish), Subscribe: only(r.Subscribe)}
	if r.Answer > 0 {
		p.Response = &natsserver.ResponsePermission{MaxMsgs: 1, Expires: r.Answer}
	}
	return p
}

// named reports whether a client states the name in its certificate. A worker of a pool has a
// name that begins with the name of the pool.
func named(id certs.Identity, client string) bool {
	switch id.Role {
	case certs.Worker:
		return client == id.Name
	case certs.Pool:
		return strings.HasPrefix(client, id.Name+"-")
	}
	return true
}

// TurnAway closes the connections of all clients but those of this process, and refuses
// new ones until Admit: they connect to another server. Routes stay. It returns how many
// it closed.
func (s *Server) TurnAway() int {
	s.admission.closed.Store(true)
	n := 0
	for _, c := range s.clients() {
		if s.s.DisconnectClientByID(c.Cid) == nil {
			n++
		}
	}
	return n
}

// Disconnect closes the connections of the clients with a name.
func (s *Server) Disconnect(name string) {
	for _, c := range s.clients() {
		if c.Name == name {
			_ = s.s.DisconnectClientByID(c.Cid) // fails if the client has left
		}
	}
}

// Admit lets clients in again.
func (s *Server) Admit() { s.admission.closed.Store(false) }

// Admits reports whether clients are let in.
func (s *Server) Admits() bool { return !s.admission.closed.Load() }

// SetRoutes has the server connect to these servers' route ports, as
// ServerOptions.Routes, and to no others any more; what connects to it stays
// connected. The server must have a route port.
func (s *Server) SetRoutes(routes []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	urls, err := routeURLs(routes)
	if err != nil {
		return err
	}
	next := s.opts.Clone()
	next.Routes = urls
	if err := s.s.ReloadOptions(next.Clone()); err != nil {
		return fmt.Errorf("the routes of the NATS server cannot be set: %w", err)
	}
	s.opts = next
	return nil
}

// remakeRoutes ends the routes that this server has made, and makes the routes of its options again. The
// other servers verify themselves then.
func (s *Server) remakeRoutes() {
	s.mu.Lock()
	defer s.mu.Unlock()
	without := s.opts.Clone()
	without.Routes = nil
	reload := func(o *natsserver.Options) {
		if err := s.s.ReloadOptions(o.Clone()); err != nil {
			s.log.Warn("the routes of the NATS server cannot be made again", "error", err)
		}
	}
	reload(without)
	// A route to a server that another server has named is not in the options. The library ends it only
	// with all routes, if the size of the pool changes; all negative sizes mean one connection.
	v, err := s.s.Routez(nil)
	if err != nil || slices.ContainsFunc(v.Routes, func(r *natsserver.RouteInfo) bool { return r.DidSolicit }) {
		s.opts.Cluster.PoolSize = -3 - s.opts.Cluster.PoolSize // -1 and -2 take turns
	}
	reload(s.opts)
}

// routeURLs parses the URLs of routes. They are in order: the library sorts them in place
// when options change, while its goroutines read them.
func routeURLs(routes []string) (urls []*url.URL, err error) {
	for _, r := range routes {
		u, err := url.Parse(r)
		if err != nil || u.Host == "" {
			return nil, fmt.Errorf("%q is not the URL of a NATS route: want nats://host:port", r)
		}
		urls = append(urls, u)
	}
	slices.SortFunc(urls, func(a, b *url.URL) int { return cmp.Compare(a.String(), b.String()) })
	return urls, nil
}

// secured accepts clients after their handshake of TLS. NATS has options for TLS, but two
// reasons speak against them:
//   - A connection that does not finish its handshake would take one of ServerOptions.Connections.
//   - All that waits for a client would have to be written within writeDeadline. Below TLS,
//     package slowlink gives this time to each chunk.
type secured struct{ net.Listener }

// Accept implements net.Listener. The library finds the certificates in a connection of this type.
func (l secured) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return c.(*certs.Conn).Conn, nil
}

// listen has a server that is not started yet accept clients with TLS. The library has no option
// for a listener, but uses the listener in its private field.
func (o *ServerOptions) listen(s *natsserver.Server, address string) error {
	field := reflect.ValueOf(s).Elem().FieldByName("listener")
	if !field.IsValid() || field.Type() != reflect.TypeFor[net.Listener]() {
		return fmt.Errorf("the NATS library %s does not accept a listener", natsserver.VERSION)
	}
	l, err := bind(address)
	if err != nil {
		return &ListenError{Address: address, Err: err}
	}
	terms := certs.Terms{Port: certs.PortClients, Within: o.Handshake, Log: o.logger()}
	*(*net.Listener)(unsafe.Pointer(field.UnsafeAddr())) = secured{certs.Listen(slowlink.Listener{Listener: l},
		o.TLS, terms)}
	return nil
}

// serverLog hands the server's log to slog. What is fatal to the server, like a
// port that is taken, goes to a channel: a library does not end the process.
type serverLog struct {
	log   *slog.Logger
	fatal chan string

	mu    sync.Mutex
	lines map[string]int // of this minute, by text without digits
	since time.Time
}

const (
	// maxLines bounds the warnings of one kind in a minute: while a coordinator is down, the library tries
	// to connect each second.
	maxLines = 10
	maxKinds = 64 // kinds of warnings in a minute; further ones count as one
)

// warn logs a warning, unless there were too many of its kind in this minute. Warnings are of one
// kind if their texts differ only in digits, as addresses do.
func (l *serverLog) warn(text string) {
	kind := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, text)
	l.mu.Lock()
	if now := time.Now(); now.Sub(l.since) >= time.Minute {
		l.lines, l.since = make(map[string]int), now
	}
	if l.lines[kind] == 0 && len(l.lines) >= maxKinds {
		kind = ""
	}
	l.lines[kind]++
	n := l.lines[kind]
	l.mu.Unlock()
	switch {
	case n < maxLines:
		l.log.Warn(text)
	case n == maxLines:
		l.log.Warn(text, "note", "further warnings of this kind are left out until the next minute")
	default:
		l.log.Debug(text)
	}
}

func (l *serverLog) Noticef(format string, v ...any) { l.log.Debug(text(format, v)) }

// Warnf implements natsserver.Logger. Package certs verifies identities in place of the
// library, which then warns that it verifies nothing.
func (l *serverLog) Warnf(format string, v ...any) {
	if t := text(format, v); strings.Contains(t, "solicited routes will not be verified") {
		l.log.Debug(t)
	} else {
		l.warn(t)
	}
}

// Errorf implements natsserver.Logger. That clients are turned away is no error, nor that
// one wants what it has no right to: it is told, and may try as often as it likes.
func (l *serverLog) Errorf(format string, v ...any) {
	if t := text(format, v); strings.HasSuffix(t, natsserver.ErrAuthentication.Error()) ||
		strings.Contains(t, " Violation - ") {
		l.log.Debug(t)
	} else {
		l.warn(t)
	}
}

func (l *serverLog) Debugf(format string, v ...any) { l.log.Debug(text(format, v)) }
func (l *serverLog) Tracef(format string, v ...any) { l.log.Debug(text(format, v)) }

func (l *serverLog) Fatalf(format string, v ...any) {
	l.log.Error(text(format, v))
	select {
	case l.fatal <- fmt.Sprintf(format, v...):
	default:
	}
}

func text(format string, v []any) string { return "nats: " + fmt.Sprintf(format, v...) }
