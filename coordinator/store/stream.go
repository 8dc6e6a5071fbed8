package store

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// stream is the TCP beneath Raft's transport. It knows every connection, so that
// closing it ends all exchanges at once instead of at their deadlines.
type stream struct {
	listener net.Listener
	advert   advert
	ctx      context.Context // done once closed
	cancel   context.CancelFunc

	mu   sync.Mutex
	open map[net.Conn]struct{} // nil once closed
}

// advert is an address as text, which may name a host.
type advert string

func (a advert) Network() string { return "tcp" }
func (a advert) String() string  { return string(a) }

// listen opens the configured address.
func listen(c *Config) (*stream, error) {
	l := c.Listener
	if l == nil {
		var err error
		if l, err = net.Listen("tcp", c.RaftAddr); err != nil {
			return nil, fmt.Errorf("store: Raft's address: %w", err)
		}
	}
	s := &stream{listener: l, advert: advert(l.Addr().String()), open: make(map[net.Conn]struct{})}
	for _, p := range c.Peers {
		if p.ID == c.ID {
			s.advert = advert(p.RaftAddr)
		}
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// Dial implements raft.StreamLayer.
func (s *stream) Dial(addr raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	d := net.Dialer{Timeout: timeout}
	c, err := d.DialContext(s.ctx, "tcp", string(addr))
	if err != nil {
		return nil, err
	}
	return s.add(c)
}

// Accept implements net.Listener.
func (s *stream) Accept() (net.Conn, error) {
	c, err := s.listener.Accept()
	if err != nil {
		return nil, err
	}
	return s.add(c)
}

// Addr implements net.Listener: the address that peers dial.
func (s *stream) Addr() net.Addr { return s.advert }

func (s *stream) add(c net.Conn) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		_ = c.Close() // it has carried nothing yet
		return nil, net.ErrClosed
	}
	t := &conn{Conn: c, stream: s}
	s.open[t] = struct{}{}
	return t, nil
}

// Close implements net.Listener: it ends the listener and every connection.
func (s *stream) Close() error {
	s.cancel()
	s.mu.Lock()
	open := s.open
	s.open = nil
	s.mu.Unlock()
	for c := range open {
		_ = c.Close() // the peer sees the same whatever this says
	}
	return s.listener.Close()
}

// conn is a connection that its stream knows.
type conn struct {
	net.Conn
	stream *stream
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.stream.mu.Lock()
	delete(c.stream.open, c)
	c.stream.mu.Unlock()
	return c.Conn.Close()
}

// addresses finds peers by the list that this process was started with, rather
// than by the one in the log: after a move only the former is right.
type addresses map[raft.ServerID]raft.ServerAddress

// ServerAddr implements raft.ServerAddressProvider.
func (a addresses) ServerAddr(id raft.ServerID) (raft.ServerAddress, error) {
	addr, ok := a[id]
	if !ok {
		return "", fmt.Errorf("store: no peer %q", id)
	}
	return addr, nil
}

// servers returns the voters, and where they are.
func servers(c *Config, self advert) ([]raft.Server, addresses) {
	peers := c.Peers
	if len(peers) == 0 {
		peers = []Peer{{ID: c.ID, RaftAddr: string(self)}}
	}
	at := make(addresses)
	var list []raft.Server
	for _, p := range peers {
		id, addr := raft.ServerID(p.ID), raft.ServerAddress(p.RaftAddr)
		at[id] = addr
		list = append(list, raft.Server{Suffrage: raft.Voter, ID: id, Address: addr})
	}
	return list, at
}
