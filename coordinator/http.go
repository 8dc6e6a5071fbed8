package coordinator

import (
	"cmp"
	"container/list"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/api"
	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/protocol/access"
)

const (
	headerWithin = 10 * time.Second // in which a request's header must arrive
	idleFor      = 30 * time.Second // for which a connection may be idle
	maxHeader    = 64 << 10
	// requestShare is the fraction of the connections that may have requests at a time.
	// The other connections remain for those who ask how this coordinator is.
	requestShare = 0.75
	// streamShare is the fraction of these requests that may be streams of changes.
	streamShare = 0.5
)

// httpServer serves HTTP within a budget. Its handler can be replaced at any time.
type httpServer struct {
	*connections
	server   *http.Server
	gate     access.Gate
	registry atomic.Pointer[access.Registry] // nil before the state is open
	handler  atomic.Pointer[http.Handler]
	serving  sync.WaitGroup
	log      *slog.Logger
}

// newHTTPServer returns a server that accepts connections from l. It does not serve
// yet.
func newHTTPServer(l net.Listener, cfg *settings) *httpServer {
	b, log := cfg.Budget, cfg.Log
	l = certs.Listen(l, cfg.TLS, certs.Terms{Port: certs.PortHTTP, Late: true, Within: cfg.timeouts.Handshake(), Log: log})
	s := &httpServer{connections: boundConnections(l, b.Connections), log: log}
	hosts := slices.Clone(cfg.Hosts)
	for _, p := range cfg.Peers {
		hosts = append(hosts, p.Host)
	}
	if own, _, err := net.SplitHostPort(cfg.entry().HTTP); err == nil { // the last start may have stated it
		hosts = append(hosts, own)
	}
	s.gate = access.Gate{TLS: cfg.TLS, Hosts: hosts, OpenMetrics: cfg.OpenMetrics, Registry: func() access.Registry {
		if r := s.registry.Load(); r != nil {
			return *r
		}
		return nil
	}}
	requests := requestShare * float64(b.Connections)
	limits := api.Limits{Requests: int(requests), Streams: int(streamShare * requests), Bodies: int(b.parts().bodies)}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*s.handler.Load()).ServeHTTP(w, r) })
	s.server = &http.Server{
		ReadHeaderTimeout: headerWithin, IdleTimeout: idleFor, MaxHeaderBytes: maxHeader,
		ConnState: s.follow, ConnContext: certs.ConnContext,
		Handler:  simplePaths(cfg.Prefix, s.gate.Identify(api.Guard(handler, limits))),
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	return s
}

// simplePaths removes from the path of a request the prefix that a proxy has left there, empty elements, and a slash at the
// end. So http.ServeMux redirects no request: its redirects would lack the prefix. The prefix may be empty. Requests without
// the prefix are answered as well: processes of the cluster do not use the proxy.
func simplePaths(prefix string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw := r.URL.EscapedPath()
		if !strings.HasPrefix(raw, "/") { // of OPTIONS *
			next.ServeHTTP(w, r)
			return
		}
		short := path.Clean(raw) // an escaped slash or dot stays
		if prefix != "" && strings.HasPrefix(short+"/", prefix+"/") {
			short = cmp.Or(short[len(prefix):], "/")
		}
		if plain, err := url.PathUnescape(short); err == nil && short != raw {
			simple := *r.URL
			simple.Path, simple.RawPath = plain, short
			r = r.WithContext(r.Context()) // a copy
			r.URL = &simple
		}
		next.ServeHTTP(w, r)
	})
}

// handle sets the handler of the requests that come from now on.
func (s *httpServer) handle(h http.Handler) { s.handler.Store(&h) }

// know sets what the cluster knows of the callers of requests that come from now on.
func (s *httpServer) know(r access.Registry) { s.registry.Store(&r) }

// start begins to serve. The handler is set already.
func (s *httpServer) start() {
	s.serving.Go(func() {
		if err := s.server.Serve(s.connections); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("HTTP stopped", "error", err)
		}
	})
}

// stop closes all connections, so that clients connect to another coordinator. A second
// call is harmless.
func (s *httpServer) stop() {
	s.server.Close()
	s.serving.Wait()
}

// connections bounds the connections of an HTTP server. If one more comes, it closes
// the connection that has been without a request for longest. If all have requests, it
// refuses the new one.
type connections struct {
	net.Listener
	most int

	mu     sync.Mutex                 // guards the fields below
	open   map[net.Conn]*list.Element // the place in idle; nil while the connection has a request
	idle   *list.List                 // of net.Conn without a request, the longest first
	closed uint64                     // connections that were closed or refused
}

func boundConnections(l net.Listener, most int) *connections {
	return &connections{Listener: l, most: most, open: make(map[net.Conn]*list.Element), idle: list.New()}
}

// Accept implements net.Listener.
func (c *connections) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		ok, instead := c.admit(conn)
		if instead != nil {
			instead.Close()
		}
		if ok {
			return conn, nil
		}
		conn.Close()
	}
}

// admit reports whether conn is accepted. The caller closes instead, if it is not nil.
func (c *connections) admit(conn net.Conn) (ok bool, instead net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.open) >= c.most {
		c.closed++
		first := c.idle.Front()
		if first == nil {
			return false, nil
		}
		instead = c.idle.Remove(first).(net.Conn)
		delete(c.open, instead)
	}
	c.open[conn] = c.idle.PushBack(conn)
	return true, instead
}

// follow is the ConnState of the server.
func (c *connections) follow(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, known := c.open[conn]
	if !known { // admit has closed it
		return
	}
	if at != nil {
		c.idle.Remove(at)
		c.open[conn] = nil
	}
	switch state {
	case http.StateNew, http.StateIdle:
		c.open[conn] = c.idle.PushBack(conn)
	case http.StateClosed, http.StateHijacked:
		delete(c.open, conn)
	}
}

// count returns how many connections are open, and how many were closed or refused.
func (c *connections) count() (open int, closed uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open), c.closed
}
