package store

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// stream is the address that Raft listens on. It outlives the lives of the node,
// each of which has a session of it.
type stream struct {
	listener net.Listener
	advert   advert
	accepted chan net.Conn
	patience time.Duration   // with a peer that stops within a request
	ctx      context.Context // done once closed
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
	s := &stream{listener: l, advert: advert(self.address()), accepted: make(chan net.Conn), patience: c.patience()}
	s.self = party{i.Cluster, string(self.raftID())}
	s.mismatches.log = c.Logger
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.work.Go(s.accept)
	return s, nil
}

// acceptPause is the time between two tries to accept a connection after one that
// failed: there may be no file descriptors just now.
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

// Close ends the listener; sessions are closed by their nodes.
func (s *stream) Close() error {
	s.cancel()
	err := s.listener.Close()
	s.work.Wait()
	return err
}

// session is the TCP beneath the transport of one life of the node. It knows every
// connection, so that closing it ends all exchanges at once instead of at their
// deadlines.
type session struct {
	stream *stream
	ctx    context.Context // done once closed
	cancel context.CancelFunc

	dials atomic.Uint64 // connections that were made

	mu   sync.Mutex
	open map[net.Conn]struct{} // nil once closed
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
	d := net.Dialer{Timeout: timeout}
	c, err := d.DialContext(t.ctx, "tcp", at)
	if err != nil {
		return nil, err
	}
	if _, err := c.Write(encodeGreeting(t.stream.self, to)); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	t.dials.Add(1)
	return t.add(&guard{Conn: &greeted{Conn: c, self: t.stream.self, to: to, strange: t.stream.mismatches.answered}})
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
		g := &greeted{Conn: c, self: t.stream.self, within: t.stream.patience, strange: t.stream.mismatches.dialled}
		return t.add(&guard{Conn: g, requests: true, patience: t.stream.patience})
	case <-t.ctx.Done():
		return nil, net.ErrClosed
	}
}

// Addr implements net.Listener: the address that peers dial.
func (t *session) Addr() net.Addr { return t.stream.advert }

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
		_ = c.Close() // the peer sees the same whatever this says
	}
	return nil
}

// conn is a connection that its session knows.
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
