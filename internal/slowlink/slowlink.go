// Package slowlink has connections that write over slow links.
package slowlink

import (
	"errors"
	"net"
	"sync/atomic"
	"time"
)

// Conn is a connection with a deadline for each chunk that is written, not for the whole. A
// slow link takes its time, and a peer that reads nothing is found. It goes below TLS: a
// connection with TLS cannot be used after a write that has failed.
type Conn struct {
	net.Conn
	stall atomic.Int64 // for how long what is written may stand still, in ns; 0: for ever
}

// chunk is what must be taken within the time of a write.
const chunk = 64 << 10

// Write implements io.Writer. Its time is the time of each chunk.
func (s *Conn) Write(p []byte) (n int, err error) {
	for len(p) > 0 && err == nil {
		if d := s.stall.Load(); d > 0 {
			if err := s.Conn.SetWriteDeadline(time.Now().Add(time.Duration(d))); err != nil {
				return n, err
			}
		}
		var m int
		m, err = s.Conn.Write(p[:min(len(p), chunk)])
		n, p = n+m, p[m:]
	}
	return n, err
}

// SetWriteDeadline implements net.Conn.
func (s *Conn) SetWriteDeadline(t time.Time) error {
	var d time.Duration
	if !t.IsZero() {
		d = max(1, time.Until(t))
	}
	s.stall.Store(int64(d))
	return s.Conn.SetWriteDeadline(t)
}

// SetDeadline implements net.Conn.
func (s *Conn) SetDeadline(t time.Time) error {
	return errors.Join(s.SetReadDeadline(t), s.SetWriteDeadline(t))
}

// Listener accepts connections of type *Conn.
type Listener struct{ net.Listener }

// Accept implements net.Listener.
func (l Listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &Conn{Conn: c}, nil
}
