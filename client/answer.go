package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/coppice-ldl/coppice/protocol"
)

// ErrUnavailable is wrapped by the error of a request that no coordinator answered in
// time.
var ErrUnavailable = errors.New("no coordinator answers")

// ErrStranger is wrapped by the error of a request that another server than a coordinator
// answered.
var ErrStranger = errors.New("not a coordinator")

// Unavailable is the error of a request that no coordinator answered in time. It wraps
// ErrUnavailable.
type Unavailable struct {
	Servers string // the addresses, separated by commas
	Last    error  // of the last try
	// Unknown is true if a try may have changed something: it got no answer, or an answer
	// that does not say.
	Unknown bool
}

func (e *Unavailable) Error() string {
	return fmt.Sprintf("%v at %s: %v", ErrUnavailable, e.Servers, e.Last)
}

// Unwrap returns ErrUnavailable and the error of the last try.
func (e *Unavailable) Unwrap() []error { return []error{ErrUnavailable, e.Last} }

// Error is the refusal of a coordinator.
type Error struct {
	Status  int // HTTP status
	Message string
	Unknown bool // true if the request may have changed something all the same
}

func (e *Error) Error() string { return e.Message }

// IsNotFound reports whether an error says that what was asked for does not exist.
func IsNotFound(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Status == http.StatusNotFound
}

// IsConflict reports whether an error says that the name belongs to something else, or
// that the state forbids it.
func IsConflict(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Status == http.StatusConflict
}

// The bounds of responses in bytes.
const (
	maxProblem = 64 << 10 // of an error
	maxSelf    = 1 << 20  // of what a coordinator says of itself
)

// prober sends each probe over a connection of its own, since a connection that hangs
// says nothing of the next.
var prober = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// alive reports whether a coordinator answers a probe within a time.
func alive(ctx context.Context, server string, within time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/healthz", nil)
	if err != nil {
		return false
	}
	response, err := prober.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<10))
	return err == nil
}

// askOnce asks a coordinator what it knows itself, without another try, and decodes the
// response in JSON.
func askOnce(ctx context.Context, server, path string, v any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server+path, nil)
	if err != nil {
		return err
	}
	response, err := prober.Do(request)
	if err != nil {
		return found(server, short(context.Background(), ctx, err))
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK || isPage(response) {
		_, err := refusal(server, response)
		return err
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxSelf)).Decode(v); err != nil {
		return short(context.Background(), ctx, err)
	}
	return nil
}

// silent is why a request was given up: nothing came for so long.
type silent struct{ time.Duration }

func (s silent) Error() string { return fmt.Sprintf("no answer in %v", s.Duration) }

// short removes what net/http adds to the error of a try: the method and the URL. The
// context limited of the try is ctx with a timeout.
func short(ctx, limited context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if limited.Err() != nil {
		if s := (silent{}); errors.As(context.Cause(limited), &s) {
			return s
		}
		return err
	}
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// refusal returns the error of a response, and whether to try again.
func refusal(server string, r *http.Response) (again bool, err error) {
	if r.StatusCode < 300 {
		return true, stranger(server, "the server answers with a web page")
	}
	b, _ := io.ReadAll(io.LimitReader(r.Body, maxProblem))
	var p protocol.Problem
	// These statuses say that no coordinator can answer now. Without a Problem they may
	// come from a proxy.
	retry := r.StatusCode == http.StatusServiceUnavailable || r.StatusCode == http.StatusBadGateway ||
		r.StatusCode == http.StatusGatewayTimeout || r.StatusCode == http.StatusTooManyRequests
	switch {
	case json.Unmarshal(b, &p) == nil && p.Error != "":
		return retry, &Error{r.StatusCode, p.Error, p.Unknown}
	case retry:
		return true, fmt.Errorf("%s: the server answers %s", bare(server), strings.TrimSpace(r.Status))
	case r.StatusCode == http.StatusBadRequest && strings.Contains(string(b), "HTTPS"): // servers in Go, nginx, Apache
		return true, stranger(server, tlsFound)
	}
	return true, stranger(server, fmt.Sprintf("the server answers the request %s %s with the status %s",
		r.Request.Method, r.Request.URL.Path, strings.TrimSpace(r.Status)))
}

// isPage reports whether a response is a web page.
func isPage(r *http.Response) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && kind == "text/html"
}

// stranger says what was found at an address instead of a coordinator.
func stranger(server, found string) error {
	return fmt.Errorf("%s is %w: %s", bare(server), ErrStranger, found)
}

// bare removes the scheme of an address.
func bare(server string) string { return strings.TrimPrefix(server, "http://") }

const (
	tlsFound  = "the server wants TLS (https), but coordinators use plain HTTP"
	natsFound = "a NATS server answers there; by default the HTTP port of a coordinator is its NATS port minus 2"
)

// malformed finds what net/http could not read as HTTP. Its error has no type.
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
	case strings.HasPrefix(m[1], `{\"server_id\"`): // the INFO of NATS, read as a version and a status
		return stranger(server, natsFound)
	case strings.HasPrefix(m[1], `\x15\x03`): // an alert of TLS
		return stranger(server, tlsFound)
	}
	return stranger(server, "the server does not use HTTP")
}
