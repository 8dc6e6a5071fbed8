package certs

import (
	"cmp"
	"crypto/x509"
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// ErrRevoked is wrapped by the error about a certificate that is revoked.
var ErrRevoked = errors.New("it is revoked; issue another one with coppice certs")

// ErrExpired is wrapped by the error about a certificate that has expired.
var ErrExpired = errors.New("it has expired")

// shown is the certificates that the other side of a connection has shown, and what they are for.
type shown struct {
	list  []*x509.Certificate // the first one is the other side's
	use   x509.ExtKeyUsage
	roles []Role // the other side has one of them

	trusted atomic.Pointer[trust] // nil: it was never found trusted
}

// trust is the result of a verification that found an authority.
type trust struct {
	by    *material // its authorities were used
	until time.Time // the first end of a certificate of the chain
}

// connections are the connections of a process to others with a certificate, and the coordinators
// that it has met.
type connections struct {
	revoked atomic.Pointer[func(serial string) bool] // nil: no certificate is revoked

	mu  sync.Mutex
	all map[*connection]struct{}
	met map[string]map[string]*x509.Certificate // by name of a coordinator, and serial number
}

// connection is a connection after the handshake.
type connection struct {
	*shown
	end  func()
	over func() bool // reports whether the connection has ended; nil: it is removed then
	made bool        // true if the entry stands for all connections that a library has made to a certificate
}

func (o *connections) isRevoked(leaf *x509.Certificate) bool {
	f := o.revoked.Load()
	return f != nil && (*f)(Serial(leaf))
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
func (o *connections) addMade(p *shown, end func()) {
	for _, c := range o.list() {
		if c.made && c.shown.list[0].Equal(p.list[0]) {
			return
		}
	}
	o.add(&connection{shown: p, end: end, made: true})
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

const (
	maxMet = 64 // coordinators that a process remembers, and certificates of each
)

// meet remembers the certificate of a coordinator. Of too many, the certificate that ends first is
// forgotten.
func (o *connections) meet(id Identity, leaf *x509.Certificate) {
	if id.Role != Coordinator {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	of := o.met[id.Name]
	if of == nil {
		if len(o.met) >= maxMet {
			return
		}
		if o.met == nil {
			o.met = make(map[string]map[string]*x509.Certificate)
		}
		of = make(map[string]*x509.Certificate)
		o.met[id.Name] = of
	}
	of[Serial(leaf)] = leaf
	if len(of) > maxMet {
		list := certificates(of)
		delete(of, Serial(list[0]))
	}
}

func certificates(of map[string]*x509.Certificate) (list []*x509.Certificate) {
	for _, c := range of {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b *x509.Certificate) int {
		return cmp.Or(a.NotAfter.Compare(b.NotAfter), cmp.Compare(Serial(a), Serial(b)))
	})
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
