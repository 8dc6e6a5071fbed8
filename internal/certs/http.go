package certs

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"slices"

	"github.com/coppice-ldl/coppice/internal/errtext"
)

// URLScheme returns the scheme of the URLs of servers with a source.
func (s *Source) URLScheme() string {
	if s == nil {
		return "http"
	}
	return "https"
}

// Transport makes t connect to coordinators, and to processes with more roles, with the
// certificates of s and without a proxy, and returns it. Its idle connections end if the certificates change. With a
// nil source it changes nothing.
func (s *Source) Transport(t *http.Transport, more ...Role) *http.Transport {
	if s != nil {
		t.Proxy = nil // through a proxy, http.Transport would not call DialTLSContext
		roles := slices.Concat(more, []Role{Coordinator})
		t.DialTLSContext = (&Dialer{Source: s, Roles: roles, Dial: t.DialContext}).DialContext
		s.OnChange(t.CloseIdleConnections)
	}
	return t
}

type peerKey struct{}

// ConnContext is the hook of http.Server. It remembers who made a connection.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	if conn, ok := c.(*Conn); ok {
		return context.WithValue(ctx, peerKey{}, conn.Peer())
	}
	return ctx
}

// PeerOf returns who made the connection of a request, or nil if it is in the clear.
func PeerOf(r *http.Request) *Peer {
	p, _ := r.Context().Value(peerKey{}).(*Peer)
	return p
}

// ErrSecure is wrapped by the error of a process in the clear that meets a server with TLS.
var ErrSecure = errtext.Errorf(errtext.NoAccess,
	"the server uses TLS, but this process does not; give {tls-dir}")

// WantsTLS reports whether a response to a request in the clear says that the server uses TLS.
func WantsTLS(status int, body []byte) bool {
	return status == http.StatusBadRequest && bytes.Contains(body, []byte("HTTPS"))
}
