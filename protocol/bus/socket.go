package bus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/internal/slowlink"
)

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
	c, err := (&certs.Dialer{Source: d.source, Roles: []certs.Role{certs.Coordinator}, Dial: d.dialClear}).DialContext(ctx, network, address)
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
