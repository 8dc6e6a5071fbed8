package certs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
)

// URLScheme returns the scheme of the URLs of servers with a source.
func (s *Source) URLScheme() string {
	if s == nil {
		return "http"
	}
	return "https"
}

// Transport makes t connect to coordinators, and to processes with more roles, with the
// certificates of s, and returns it. With a nil source it changes nothing.
func (s *Source) Transport(t *http.Transport, more ...Role) *http.Transport {
	if s != nil {
		t.DialTLSContext = (&Dialer{Source: s, Roles: append(more, Coordinator), Dial: t.DialContext}).DialContext
	}
	return t
}

type peerKey struct{}

// known is who made a connection.
type known struct {
	id  Identity
	err error
}

// ConnContext is the hook of http.Server. It remembers who made a connection.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	if conn, ok := c.(*Conn); ok {
		return context.WithValue(ctx, peerKey{}, known{conn.peer, conn.err})
	}
	return ctx
}

// Require returns a handler that answers only callers with a valid certificate. Other callers
// get the status of the open paths, and nothing else. ConnContext must be set. With a nil
// source Require returns h.
func Require(h http.Handler, s *Source, open ...string) http.Handler {
	if s == nil {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		peer, ok := r.Context().Value(peerKey{}).(known)
		switch {
		case ok && peer.err == nil:
			h.ServeHTTP(w, r)
		case r.Method == http.MethodGet && slices.Contains(open, r.URL.Path):
			h.ServeHTTP(statusOnly{w}, r)
		default:
			refuse(w, peer.err)
		}
	})
}

// refuse answers a caller without a valid certificate.
func refuse(w http.ResponseWriter, err error) {
	status := http.StatusForbidden
	if err == nil || errors.Is(err, ErrNoCertificate) {
		status = http.StatusUnauthorized
		err = fmt.Errorf("this server answers only callers with a certificate of its cluster; give --tls-dir with a folder from coppice certs client: %w", ErrNoCertificate)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": err.Error()}) // an error: the caller has ended the connection
}

// statusOnly writes the status of a response without its body.
type statusOnly struct{ http.ResponseWriter }

// Write implements io.Writer.
func (w statusOnly) Write(b []byte) (int, error) { return len(b), nil }

// ErrSecure is wrapped by the error of a process in the clear that meets a server with TLS.
var ErrSecure = errors.New("the server uses TLS, but this process is in the clear; give --tls-dir")

// Clear reports whether a response of HTTP says that its server uses TLS.
func Clear(status int, body []byte) bool {
	return status == http.StatusBadRequest && bytes.Contains(body, []byte("HTTPS"))
}
