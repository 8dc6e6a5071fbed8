package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/internal/rtt"
)

// transport is the transport of a node. A node that cannot write its log is never a
// candidate: transport answers the calls that would make it one. It also measures round
// trips.
type transport struct {
	*raft.NetworkTransport
	rpcs chan raft.RPC // to Raft
	quit chan struct{}
	once sync.Once      // of closing quit
	work sync.WaitGroup // pass

	beating sync.RWMutex // held by heartbeats, which do not come through rpcs
	ended   bool         // true if heartbeats are refused; guarded by beating

	notWritable atomic.Bool           // true if the log cannot be written
	fault       func(op string) error // for tests; nil: none

	trips *rtt.Table    // round trips to peers, by id
	dials func() uint64 // the number of connections that were made; nil if there are none
}

func newTransport(t *raft.NetworkTransport, dials func() uint64, fault func(op string) error) *transport {
	g := &transport{trips: new(rtt.Table), NetworkTransport: t, rpcs: make(chan raft.RPC), quit: make(chan struct{}),
		dials: dials, fault: fault}
	g.work.Go(g.pass)
	return g
}

// stop ends the goroutine of the transport, and waits for heartbeats, after Raft has ended.
func (g *transport) stop() {
	g.once.Do(func() { close(g.quit) })
	g.work.Wait()
	g.beating.Lock()
	defer g.beating.Unlock()
	g.ended = true
}

// SetHeartbeatHandler implements raft.Transport. Raft handles heartbeats in the goroutines
// of connections, even after it has shut down, when VOTE may be closed.
func (g *transport) SetHeartbeatHandler(handle func(raft.RPC)) {
	g.NetworkTransport.SetHeartbeatHandler(func(rpc raft.RPC) {
		g.beating.RLock()
		defer g.beating.RUnlock()
		if g.ended {
			rpc.Respond(nil, raft.ErrTransportShutdown)
			return
		}
		handle(rpc)
	})
}

// Consumer implements raft.Transport.
func (g *transport) Consumer() <-chan raft.RPC { return g.rpcs }

// pass hands the requests of peers to Raft. A request to become a candidate is refused if
// the log cannot be written.
func (g *transport) pass() {
	in := g.NetworkTransport.Consumer()
	for {
		select {
		case rpc := <-in:
			if _, ok := rpc.Command.(*raft.TimeoutNowRequest); ok && g.notWritable.Load() {
				rpc.Respond(&raft.TimeoutNowResponse{}, errAbstains)
				continue
			}
			select {
			case g.rpcs <- rpc:
			case <-g.quit:
				return
			}
		case <-g.quit:
			return
		}
	}
}

// errAbstains is the error of a call that would make the node a candidate.
var errAbstains = errors.New("store: this coordinator is not a candidate for leadership at the moment")

// TimeoutNow implements raft.Transport.
func (g *transport) TimeoutNow(id raft.ServerID, at raft.ServerAddress, args *raft.TimeoutNowRequest,
	resp *raft.TimeoutNowResponse) error {
	if g.fault != nil {
		if err := g.fault("timeout-now"); err != nil {
			return err
		}
	}
	return g.NetworkTransport.TimeoutNow(id, at, args, resp)
}

// InstallSnapshot implements raft.Transport.
func (g *transport) InstallSnapshot(id raft.ServerID, at raft.ServerAddress, args *raft.InstallSnapshotRequest,
	resp *raft.InstallSnapshotResponse, data io.Reader) error {
	if g.fault != nil {
		data = &faultyReader{data, g.fault}
	}
	return g.NetworkTransport.InstallSnapshot(id, at, args, resp, data)
}

// faultyReader reads a snapshot that is sent to a peer, for tests.
type faultyReader struct {
	io.Reader
	fault func(op string) error
}

// Read implements io.Reader.
func (r *faultyReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b[:min(len(b), 4096)]) // so that there are several
	if fault := r.fault("install"); fault != nil {
		return 0, fault
	}
	return n, err
}

// AppendEntries implements raft.Transport. Heartbeats have no entries and are answered at
// once, so they tell the round trip.
func (g *transport) AppendEntries(id raft.ServerID, at raft.ServerAddress, args *raft.AppendEntriesRequest,
	resp *raft.AppendEntriesResponse) (err error) {
	if len(args.Entries) == 0 {
		defer g.timed(id, g.begin(), &err)
	}
	return g.NetworkTransport.AppendEntries(id, at, args, resp)
}

// beginning is the time when an exchange began, and the number of connections until then.
type beginning struct {
	at    time.Time
	dials uint64
}

func (g *transport) begin() beginning {
	b := beginning{at: time.Now()}
	if g.dials != nil {
		b.dials = g.dials()
	}
	return b
}

// timed records the time of an exchange that was answered. A new connection takes another
// round trip, so exchanges with one are left out.
func (g *transport) timed(id raft.ServerID, from beginning, err *error) {
	if took := time.Since(from.at); *err == nil && g.begin().dials == from.dials {
		g.trips.Add(parseServer(id, "").ID, took)
	}
}

// RequestVote implements raft.Transport. It tells no round trip, since a peer writes its
// vote to the disk first.
func (g *transport) RequestVote(id raft.ServerID, at raft.ServerAddress, args *raft.RequestVoteRequest,
	resp *raft.RequestVoteResponse) error {
	if g.notWritable.Load() {
		return errAbstains
	}
	return g.NetworkTransport.RequestVote(id, at, args, resp)
}

// RequestPreVote implements raft.WithPreVote. Every election begins with it, so it tells
// round trips even if no election is ever won.
func (g *transport) RequestPreVote(id raft.ServerID, at raft.ServerAddress, args *raft.RequestPreVoteRequest,
	resp *raft.RequestPreVoteResponse) (err error) {
	if g.notWritable.Load() {
		return errAbstains
	}
	defer g.timed(id, g.begin(), &err)
	return g.NetworkTransport.RequestPreVote(id, at, args, resp)
}

// stream is the address that Raft listens on. It stays while Raft is restarted; each Raft
// node has a session of it.
type stream struct {
	listener net.Listener
	advert   advert
	accepted chan net.Conn
	patience time.Duration // the longest wait within a request of a peer
	dialer   certs.Dialer
	ctx      context.Context // done after Close
	cancel   context.CancelFunc
	work     sync.WaitGroup // accept

	self       party // of this end of each connection
	mismatches mismatches
}

// advert is an address as text, which may name a host.
type advert string

func (a advert) Network() string { return "tcp" }
func (a advert) String() string  { return string(a) }

// listen opens the configured address of a node.
func listen(c *Config, i Identity) (*stream, error) {
	l := c.Listener
	if l == nil {
		var err error
		if l, err = net.Listen("tcp", c.RaftAddr); err != nil {
			return nil, fmt.Errorf("store: the Raft address cannot be used: %w", err)
		}
	}
	self := i.server()
	self.RaftAddr = l.Addr().String()
	if len(c.Peers) > 0 {
		self.RaftAddr = c.selfAddr()
	}
	s := &stream{
		listener: certs.Listen(l, c.TLS, certs.Terms{Port: certs.PortRaft, Within: c.timeouts.Handshake(), Log: c.Logger}),
		advert:   advert(addressOf(self)), accepted: make(chan net.Conn), patience: c.patience(),
		dialer: certs.Dialer{Source: c.TLS, Roles: []certs.Role{certs.Coordinator}},
	}
	s.self = party{i.Cluster, string(raftID(self))}
	s.mismatches.log = c.Logger
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.work.Go(s.accept)
	return s, nil
}

// acceptPause is the time between two attempts to accept a connection after one failed:
// there may be no file descriptors.
const acceptPause = 10 * time.Millisecond

// accept hands connections to the session that takes them.
func (s *stream) accept() {
	for s.ctx.Err() == nil {
		c, err := s.listener.Accept()
		if err != nil {
			select {
			case <-s.ctx.Done():
			case <-time.After(acceptPause):
			}
			continue
		}
		select {
		case s.accepted <- c:
		case <-s.ctx.Done():
			_ = c.Close() // it has carried nothing yet
		}
	}
}

// Close closes the listener. Nodes close their sessions.
func (s *stream) Close() error {
	s.cancel()
	err := s.listener.Close()
	s.work.Wait()
	return err
}

// session is the TCP layer of one Raft node. It knows every connection, so Close ends all
// exchanges immediately and not at their deadlines.
type session struct {
	stream *stream
	ctx    context.Context // done after Close
	cancel context.CancelFunc

	dials atomic.Uint64 // the number of connections that were made

	mu   sync.Mutex
	open map[net.Conn]struct{} // nil after Close; guarded by mu
}

func (s *stream) session() *session {
	t := &session{stream: s, open: make(map[net.Conn]struct{})}
	t.ctx, t.cancel = context.WithCancel(s.ctx)
	return t
}

// Dial implements raft.StreamLayer. The address names the server that must answer there.
func (t *session) Dial(addr raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	to, at, ok := strings.Cut(string(addr), "@")
	if !ok {
		return nil, fmt.Errorf("store: the address %q names no server", addr)
	}
	ctx, cancel := context.WithTimeout(t.ctx, timeout)
	defer cancel()
	c, err := t.stream.dialer.DialContext(ctx, "tcp", at)
	if err != nil {
		return nil, err
	}
	if _, err := c.Write(encodeGreeting(t.stream.self, to)); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	t.dials.Add(1)
	return t.add(&guard{Conn: &greeted{Conn: c, self: t.stream.self, to: to, strange: t.stream.mismatches.answered,
		forged: t.stream.mismatches.impostor}})
}

// Accept implements net.Listener.
func (t *session) Accept() (net.Conn, error) {
	select {
	case <-t.ctx.Done():
		return nil, net.ErrClosed
	default:
	}
	select {
	case c := <-t.stream.accepted:
		g := &greeted{Conn: c, self: t.stream.self, within: t.stream.patience, strange: t.stream.mismatches.dialled,
			forged: t.stream.mismatches.impostor}
		return t.add(&guard{Conn: g, requests: true, patience: t.stream.patience})
	case <-t.ctx.Done():
		return nil, net.ErrClosed
	}
}

// Addr implements net.Listener: the address that peers dial.
func (t *session) Addr() net.Addr { return t.stream.advert }

// add returns c as a connection of the session.
func (t *session) add(c net.Conn) (net.Conn, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == nil {
		_ = c.Close() // it has carried nothing yet
		return nil, net.ErrClosed
	}
	known := &conn{Conn: c, session: t}
	t.open[known] = struct{}{}
	return known, nil
}

// Close implements net.Listener: it ends every connection.
func (t *session) Close() error {
	t.cancel()
	t.mu.Lock()
	open := t.open
	t.open = nil
	t.mu.Unlock()
	for c := range open {
		_ = c.Close() // the peer sees the same in any case
	}
	return nil
}

// conn is a connection that leaves its session when it is closed.
type conn struct {
	net.Conn
	session *session
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.session.mu.Lock()
	delete(c.session.open, c)
	c.session.mu.Unlock()
	return c.Conn.Close()
}

// addresses finds peers: by Config.Locate, then by Config.Peers, then by the configuration
// in the log, which has the addresses from when the members joined.
type addresses struct {
	locate func(id string) string    // may be nil
	given  map[string]string         // by coordinator
	node   atomic.Pointer[raft.Raft] // nil until it runs
}

// newAddresses returns the addresses of a node that peers reach at self.
func newAddresses(c *Config, self string) *addresses {
	at := &addresses{locate: c.Locate, given: make(map[string]string)}
	for _, p := range c.Peers {
		at.given[p.ID] = p.RaftAddr
	}
	if len(c.Peers) == 0 {
		at.given[c.ID] = self
	}
	return at
}

// ServerAddr implements raft.ServerAddressProvider.
func (a *addresses) ServerAddr(id raft.ServerID) (raft.ServerAddress, error) {
	s := parseServer(id, "")
	if a.locate != nil {
		s.RaftAddr = a.locate(s.ID)
	}
	if s.RaftAddr == "" {
		s.RaftAddr = a.given[s.ID]
	}
	if r := a.node.Load(); r != nil && s.RaftAddr == "" {
		for _, m := range r.GetConfiguration().Configuration().Servers {
			if m.ID == id {
				return m.Address, nil
			}
		}
	}
	if s.RaftAddr == "" {
		return "", fmt.Errorf("store: there is no peer %q", id)
	}
	return addressOf(s), nil
}
