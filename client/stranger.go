package client

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"regexp"
	"strings"
	"syscall"
)

// ErrStranger is wrapped by the error of a request that something else than a
// coordinator answered.
var ErrStranger = errors.New("not a coordinator")

// stranger says what was found at an address in place of a coordinator.
func stranger(server, found string) error {
	return fmt.Errorf("%s is %w: %s", bare(server), ErrStranger, found)
}

// bare takes the scheme off an address.
func bare(server string) string { return strings.TrimPrefix(server, "http://") }

const (
	tlsFound  = "the server wants TLS (https), but coordinators use plain HTTP"
	natsFound = "a NATS server answers there; by default the HTTP port of a coordinator is its NATS port minus 2"
)

// unlikely describes an error answer that is not in the words of a coordinator. Away
// ones may come from a proxy before a coordinator.
func unlikely(r *http.Response, body string) (found string, away bool) {
	status := strings.TrimSpace(r.Status)
	switch {
	case retryable(r.StatusCode):
		return fmt.Sprintf("the server answers %s", status), true
	case r.StatusCode == http.StatusBadRequest && strings.Contains(body, "HTTPS"): // Go's servers, nginx, Apache
		return tlsFound, false
	}
	return fmt.Sprintf("the server answers the request %s %s with the status %s", r.Request.Method, r.Request.URL.Path, status), false
}

// retryable reports whether a status says that nobody can answer just now.
func retryable(status int) bool {
	switch status {
	case http.StatusServiceUnavailable, http.StatusBadGateway, http.StatusGatewayTimeout, http.StatusTooManyRequests:
		return true
	}
	return false
}

// page reports whether an answer is for people.
func page(r *http.Response) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && kind == "text/html"
}

// malformed finds what net/http could not read as HTTP: it has no type for it.
var malformed = regexp.MustCompile(`malformed HTTP (?:response|status code|version) "(.*)"`)

// found turns an error of a connection into what was found at the address.
func found(server string, err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno // without "dial tcp" and the like
	}
	m := malformed.FindStringSubmatch(err.Error())
	switch {
	case strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return stranger(server, "the server uses plain HTTP: write the address without https://")
	case m == nil:
		return err
	case strings.HasPrefix(m[1], `{\"server_id\"`): // INFO {...}, read as a version and a status
		return stranger(server, natsFound)
	case strings.HasPrefix(m[1], `\x15\x03`): // an alert of TLS
		return stranger(server, tlsFound)
	}
	return stranger(server, "the server does not use HTTP")
}
