package certs

import (
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// ErrRevoked is wrapped by the error about a certificate that is revoked.
var ErrRevoked = errors.New("it is revoked; issue another one with coppice certs")

// ErrExpired is wrapped by the error about a certificate that has expired.
var ErrExpired = errors.New("it has expired")

// connections are the connections of a process to others with a certificate.
type connections struct {
	revoked atomic.Pointer[func(serial string) bool] // nil: no certificate is revoked

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

func (o *connections) isRevoked(leaf *x509.Certificate) bool {
	f := o.revoked.Load()
	return f != nil && (*f)(Serial(leaf))
}

// cut ends the connections with a certificate that has expired or is revoked.
func (o *connections) cut(now time.Time, log *slog.Logger) {
	for _, c := range o.list() {
		why := ""
		switch {
		case c.over != nil && c.over():
			o.remove(c)
			continue
		case now.After(c.leaf.NotAfter):
			why = "the certificate of the other side has expired"
		case o.isRevoked(c.leaf):
			why = "the certificate of the other side is revoked"
		default:
			continue
		}
		o.remove(c)
		id, _ := IdentityOf(c.leaf) // it was verified
		log.Warn("a connection was cut", "identity", id.String(), "serial", Serial(c.leaf), "reason", why)
		c.end()
	}
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

// closed reports whether this process has closed a connection.
func closed(c net.Conn) bool {
	tcp, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := tcp.SyscallConn()
	return err != nil || raw.Control(func(uintptr) {}) != nil
}
