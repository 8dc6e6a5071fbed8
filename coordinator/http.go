package coordinator

import (
	"bytes"
	"cmp"
	"container/list"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/access"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

const (
	headerWithin = 10 * time.Second // in which a request's header must arrive
	idleFor      = 30 * time.Second // for which a connection may be idle
	maxHeader    = 64 << 10
	// requestShare is the fraction of the connections that may have requests at a time.
	// The other connections remain for those who ask how this coordinator is.
	requestShare = 0.75
	// streamShare is the fraction of these requests that may be streams of changes, and pageShare the fraction that may
	// be streams of open pages. One caller may have three quarters of these: 200 open pages of 512 connections.
	streamShare = 0.8
	pageShare   = 0.7
)

// limitsOf returns the limits of requests within a budget.
func limitsOf(b *Budget) api.Limits {
	requests := requestShare * float64(b.Connections)
	return api.Limits{Requests: int(requests), Streams: int(streamShare * requests), Pages: int(pageShare * requests),
		Bodies: int(b.parts().bodies)}
}

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
	origin := ""
	if cfg.public.Host != "" {
		hosts, origin = append(hosts, cfg.public.Hostname()), cfg.public.Scheme+"://"+cfg.public.Host
	}
	s.gate = access.Gate{TLS: cfg.TLS, Hosts: hosts, Origin: origin, Prefix: cfg.public.Path, OpenMetrics: cfg.OpenMetrics,
		Registry: func() access.Registry {
			if r := s.registry.Load(); r != nil {
				return *r
			}
			return nil
		}}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*s.handler.Load()).ServeHTTP(w, r) })
	s.server = &http.Server{
		ReadHeaderTimeout: headerWithin, IdleTimeout: idleFor, MaxHeaderBytes: maxHeader,
		ConnState: s.follow, ConnContext: certs.ConnContext,
		Handler:  simplePaths(cfg.public.Path, s.gate.Identify(api.Guard(handler, limitsOf(&b)))),
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	return s
}

// simplePaths removes from the path of a request the prefix that a proxy has left there, empty elements, and a slash at
// the end. So http.ServeMux redirects no request: its redirects would lack the prefix. The prefix may be empty.
// Requests without the prefix are answered as well: processes of the cluster do not use the proxy.
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

// catchUp is how long a follower waits before it refuses a token. The leader may have just accepted
// the token, and a follower on a busy machine is late.
const catchUp = time.Second

// registry is what the replicated state knows of the callers of HTTP.
type registry struct {
	store   *store.Store
	leading func() bool
	id      string // of the cluster
}

var _ access.Registry = (*registry)(nil)

// Token implements access.Registry.
func (r *registry) Token(id string) (access.Token, bool) {
	t := r.store.State().Token(id)
	if t == nil || t.Revoked != 0 {
		return access.Token{}, false
	}
	token := access.Token{Owner: t.Owner, Role: rights.Role(t.Role)}
	if t.Expires != 0 {
		token.Ends = time.Unix(t.Expires, 0)
	}
	n, err := hex.Decode(token.Hash[:], []byte(t.Hash)) // the state has checked its form
	return token, err == nil && n == len(token.Hash)
}

// CatchUp implements access.Registry.
func (r *registry) CatchUp(ctx context.Context, done func() bool) {
	if r.leading() {
		return
	}
	end := time.NewTimer(catchUp)
	defer end.Stop()
	for {
		_, changed := r.store.Watch()
		if done() {
			return
		}
		select {
		case <-changed:
		case <-end.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// ClusterID implements access.Registry.
func (r *registry) ClusterID() string { return r.id }

// Member implements access.Registry.
func (r *registry) Member(name string) bool {
	_, ok := r.store.State().Member(name)
	return ok
}

// Revoked implements access.Registry.
func (r *registry) Revoked(serial string) bool { return r.store.State().Revoked(serial) }

const askTimeout = 2 * time.Second // of one question

// asker asks other coordinators. Each connection serves one question, so no connection
// stays open.
type asker struct {
	http   *http.Client
	scheme string // of URLs
	log    *slog.Logger

	mu   sync.Mutex
	said time.Time // when the log last named certs.ErrSecure
}

// ErrRemoved ends a coordinator that was removed from its cluster.
var ErrRemoved = errors.New("this coordinator was removed from its cluster")

// newAsker returns an asker with the certificates of this process; nil: in the clear.
func newAsker(source *certs.Source, log *slog.Logger) *asker {
	return &asker{http: &http.Client{Transport: source.Transport(&http.Transport{DisableKeepAlives: true})},
		scheme: source.URLScheme(), log: log}
}

// get requests a path of a coordinator. The caller closes the body.
func (k *asker) get(ctx context.Context, address, path string) (*http.Response, error) {
	return k.send(ctx, http.MethodGet, address, path, nil)
}

func (k *asker) send(ctx context.Context, method, address, path string, body io.Reader) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, k.scheme+"://"+address+path, body)
	if err != nil {
		return nil, err
	}
	return k.http.Do(request)
}

// post sends a JSON value to a coordinator.
func (k *asker) post(ctx context.Context, address, path string, v any) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	response, err := k.send(ctx, http.MethodPost, address, path, bytes.NewReader(b))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", address, response.Status)
	}
	return nil
}

// ask gets a JSON value from a coordinator. The error wraps ErrRemoved if the coordinator answers that
// this one was removed, and refuses its certificate.
func (k *asker) ask(ctx context.Context, address, path string, v any) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	response, err := k.get(ctx, address, path)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	b, err := io.ReadAll(io.LimitReader(response.Body, protocol.MaxJSON))
	if err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	if response.StatusCode == access.StatusRemoved {
		return fmt.Errorf("%s: %w", address, ErrRemoved)
	}
	if response.StatusCode != http.StatusOK {
		if certs.WantsTLS(response.StatusCode, b) {
			k.warnSecure(address)
			return fmt.Errorf("%s: %w", address, certs.ErrSecure)
		}
		return fmt.Errorf("%s: %s", address, response.Status)
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	return nil
}

// warnSecure logs at most once a minute that another coordinator uses TLS: other errors of a process
// in the clear, such as the end of a connection, do not name the reason.
func (k *asker) warnSecure(address string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now := time.Now(); now.Sub(k.said) >= time.Minute {
		k.said = now
		k.log.Error(certs.ErrSecure.Error(), "coordinator", address)
	}
}

// askSelf asks a coordinator who it is.
func (k *asker) askSelf(ctx context.Context, address string) (s protocol.Self, err error) {
	err = k.ask(ctx, address, "/v1/self", &s)
	return s, err
}
