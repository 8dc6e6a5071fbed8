package bus

import (
	"cmp"
	"fmt"
	"log/slog"
	"math"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"github.com/coppice-ldl/coppice/internal/certs"
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
		WriteDeadline: cmp.Or(o.deadline, writeDeadline), WriteTimeout: natsserver.WriteTimeoutPolicyRetry, MaxSubs: maxSubscriptions, MaxSubTokens: maxTokens,
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

// free reports an address that cannot be bound. NATS itself would only log it.
func free(host string, port int) error {
	if port <= 0 {
		return nil
	}
	l, err := net.Listen("tcp", place(host, port))
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
