package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"
)

// ErrRevoked is wrapped by the error about a certificate that is revoked.
var ErrRevoked = errors.New("it is revoked; issue another one with coppice certs")

// Revoked has the source refuse the certificates for which revoked returns true. It is called
// before the first use of the source by others, or again. Cut ends connections that exist.
func (s *Source) Revoked(revoked func(serial string) bool) {
	if s != nil {
		s.revoked.Store(&revoked)
	}
}

// isRevoked reports whether the certificate with a serial number is revoked.
func (s *Source) isRevoked(serial string) bool {
	f := s.revoked.Load()
	return f != nil && (*f)(serial)
}

// Cut ends the connections to others with a certificate that is revoked or has expired.
func (s *Source) Cut(now time.Time) {
	if s == nil {
		return
	}
	for _, c := range s.open.list() {
		serial, why := Serial(c.leaf), ""
		switch {
		case c.over != nil && c.over():
			s.open.remove(c)
			continue
		case now.After(c.leaf.NotAfter):
			why = "the certificate of the other side has expired"
		case s.isRevoked(serial):
			why = "the certificate of the other side is revoked"
		default:
			continue
		}
		s.open.remove(c)
		id, _ := IdentityOf(c.leaf) // it was verified
		s.log.Warn("a connection was cut", "identity", id.String(), "serial", serial, "reason", why)
		c.end()
	}
}

// connections are those in use.
type connections struct {
	mu  sync.Mutex
	all map[*connection]struct{}
}

// connection is a connection after the handshake.
type connection struct {
	leaf *x509.Certificate // of the other side
	end  func()
	over func() bool // reports whether the connection has ended; nil: it is removed then
	made bool        // true if the entry stands for all connections that a library has made to a certificate
}

func (o *connections) add(c *connection) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all == nil {
		o.all = make(map[*connection]struct{})
	}
	o.all[c] = struct{}{}
}

// addMade adds the connections that a library has made to a certificate. The library does not
// say when they end, so there is one entry for each certificate.
func (o *connections) addMade(leaf *x509.Certificate, end func()) {
	for _, c := range o.list() {
		if c.made && c.leaf.Equal(leaf) {
			return
		}
	}
	o.add(&connection{leaf: leaf, end: end, made: true})
}

func (o *connections) remove(c *connection) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.all, c)
}

func (o *connections) list() (list []*connection) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for c := range o.all {
		list = append(list, c)
	}
	return list
}

// below is a connection below TLS. Once it is kept, Cut can end it.
type below struct {
	net.Conn
	source *Source

	mu    sync.Mutex
	ended bool
	kept  *connection
}

// keep is called after the handshake with the certificate of the other side.
func (b *below) keep(leaf *x509.Certificate) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended || b.kept != nil {
		return
	}
	b.kept = &connection{leaf: leaf, end: func() { b.Conn.Close() }}
	b.source.open.add(b.kept)
}

// Close implements io.Closer.
func (b *below) Close() error {
	b.mu.Lock()
	b.ended = true
	kept := b.kept
	b.mu.Unlock()
	if kept != nil {
		b.source.open.remove(kept)
	}
	return b.Conn.Close()
}

// Mutual returns the configuration of both sides of a connection, for a library that dials
// and listens. Cut ends connections that the library has accepted. For those that it has made,
// see OnDrop.
func (s *Source) Mutual(p Port) *tls.Config {
	config := s.config(x509.ExtKeyUsageAny, p.Roles, true)
	accepts, verify := config.Clone(), config.VerifyConnection
	config.VerifyConnection = func(state tls.ConnectionState) error {
		err := verify(state)
		if err == nil {
			s.open.addMade(state.PeerCertificates[0], func() {
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
				s.open.add(&connection{leaf: state.PeerCertificates[0], end: func() { c.Close() }, over: func() bool { return closed(c) }})
			}
			return err
		}
		return one, nil
	}
	return config
}

// OnDrop sets a function that ends the connections that a library has made with the configuration
// of Mutual. Cut calls it if the certificate of one of them is revoked or has expired.
func (s *Source) OnDrop(f func()) { s.drop.Store(&f) }

// closed reports whether this process has closed a connection.
func closed(c net.Conn) bool {
	tcp, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := tcp.SyscallConn()
	return err != nil || raw.Control(func(uintptr) {}) != nil
}
