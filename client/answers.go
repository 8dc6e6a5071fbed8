package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"regexp"
	"strings"
	"syscall"

	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/protocol"
)

// ErrStranger is wrapped by the error of a request that another server than a coordinator
// answered.
var ErrStranger = errors.New("not a coordinator")

// Error is the refusal of a coordinator, or of a proxy before it.
type Error struct {
	Status  int // HTTP status
	Message string
	Unknown bool // true if the request may have changed something all the same
	// Proxy is true if the answer is not of a coordinator, and its status says that the same
	// request will be refused again.
	Proxy bool
	// Mistakes lists what is wrong with the spec of an experiment and its data.
	Mistakes []string
	// Form is Message with places for options, and MistakeForms has the form of each mistake. They may be nil.
	Form         *errtext.Form
	MistakeForms []*errtext.Form
	// Plan is set if a submission of an experiment was refused because runs would be orphaned.
	Plan *protocol.ExperimentPlan
}

func (e *Error) Error() string { return e.Message }

// Formed implements errtext.Formed.
func (e *Error) Formed() (errtext.Code, errtext.Text) {
	if e.Form == nil {
		return "", errtext.Sprintf("%s", e.Message)
	}
	return e.Form.Code, e.Form.Whole()
}

// IsNotFound reports whether an error says that what was asked for does not exist.
func IsNotFound(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Status == http.StatusNotFound
}

// byProxy reports whether an error is the refusal of a proxy.
func byProxy(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Proxy
}

// IsConflict reports whether an error says that the name belongs to something else, or
// that the state forbids it.
func IsConflict(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Status == http.StatusConflict
}

// maxProblem bounds the text of an error, in bytes.
const maxProblem = 1 << 20

// refusal returns the error of a response, and whether to try again. err is nil if the
// response is a success.
func refusal(server string, r *http.Response) (again bool, err error) {
	if r.StatusCode < 300 {
		kind, of, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if err == nil && kind == "text/html" && of["product"] != protocol.Product {
			return true, stranger(server, "the server answers with a web page")
		}
		return false, nil
	}
	b, _ := io.ReadAll(io.LimitReader(r.Body, maxProblem))
	var p protocol.Problem
	// These statuses say that no coordinator can answer now. Without a Problem they may
	// come from a proxy.
	retry := r.StatusCode == http.StatusServiceUnavailable || r.StatusCode == http.StatusBadGateway ||
		r.StatusCode == http.StatusGatewayTimeout || r.StatusCode == http.StatusTooManyRequests
	switch {
	case json.Unmarshal(b, &p) == nil && p.Error != "":
		refused := &Error{Status: r.StatusCode, Message: p.Error, Unknown: p.Unknown, Mistakes: p.Mistakes, Form: p.Form,
			MistakeForms: p.MistakeForms}
		if p.Plan != nil && json.Unmarshal(p.Plan, &refused.Plan) != nil {
			return true, stranger(server, "the server answers with a plan that cannot be read")
		}
		return retry, refused
	case retry:
		return true, fmt.Errorf("%s: the server answers %s", bare(server), strings.TrimSpace(r.Status))
	case certs.WantsTLS(r.StatusCode, b): // servers in Go, nginx, Apache
		return true, stranger(server, tlsFound)
	case proxyRefuses[r.StatusCode]:
		return true, refusedByProxy(server, r)
	}
	return true, stranger(server, unexpected(server, r))
}

// proxyRefuses has the statuses with which a proxy refuses a request, and will refuse it again.
// Coordinators have other statuses, or answer with a Problem.
var proxyRefuses = map[int]bool{
	http.StatusUnauthorized: true, http.StatusForbidden: true, http.StatusMethodNotAllowed: true,
	http.StatusProxyAuthRequired: true,
	http.StatusLengthRequired:    true, http.StatusRequestEntityTooLarge: true, http.StatusRequestURITooLong: true,
	http.StatusUnsupportedMediaType: true, http.StatusExpectationFailed: true,
	http.StatusRequestHeaderFieldsTooLarge: true,
	http.StatusUnavailableForLegalReasons:  true, http.StatusNotImplemented: true,
}

// refusedByProxy returns the error of a response with a status of proxyRefuses.
func refusedByProxy(server string, r *http.Response) *Error {
	request, status := r.Request.Method+" "+r.Request.URL.Path, strings.TrimSpace(r.Status)
	text := errtext.Sprintf("%s: a proxy, and not a coordinator, refuses the request %s with the status %s. Configure "+
		"the proxy to pass it on, or give the address of a coordinator in {server}",
		bare(server), request, status)
	if r.StatusCode == http.StatusRequestEntityTooLarge {
		text = errtext.Sprintf("%s: a proxy, and not a coordinator, refuses the request %s with the status %s. The body "+
			"has %s: raise the limit of the proxy for bodies (client_max_body_size of nginx), or give the address of a "+
			"coordinator in {server}",
			bare(server), request, status, units.Format(r.Request.ContentLength))
	}
	return &Error{Status: r.StatusCode, Message: text.String(), Proxy: true,
		Form: errtext.Of(text.String(), errtext.Errorf(errtext.NoAccess, "%s", text))}
}

// unexpected says what a server has answered that is not a coordinator.
func unexpected(server string, r *http.Response) errtext.Text {
	text := errtext.Sprintf("the server answers the request %s %s with the status %s", r.Request.Method,
		r.Request.URL.Path, strings.TrimSpace(r.Status))
	below := strings.TrimPrefix(r.Request.URL.String(), server) // the path of the API
	path := strings.TrimSuffix(r.Request.URL.EscapedPath(), strings.SplitN(below, "?", 2)[0])
	switch to, err := r.Location(); {
	case r.StatusCode < 400 && err == nil:
		if at, ok := strings.CutSuffix(to.String(), below); ok {
			return errtext.Sprintf("%s, which redirects it; give {server=%s}", text, at)
		}
		return errtext.Sprintf("%s, which redirects it to %s", text, to)
	case r.StatusCode == http.StatusNotFound && path != "":
		return errtext.Sprintf("%s; check the path %s in {server}", text, path)
	case r.StatusCode == http.StatusNotFound:
		return errtext.Sprintf("%s; if a proxy has the API below a path, add the path to the address in {server}", text)
	}
	return text
}

// stranger says what was found at an address instead of a coordinator.
func stranger(server string, found errtext.Text) error {
	return errtext.Errorf(errtext.NoAccess, "%s is %w: %s", bare(server), ErrStranger, found)
}

// distrusted is the error about a coordinator with a certificate that is not valid. It wraps ErrStranger: no request is
// sent there.
type distrusted struct {
	server string
	peer   *certs.PeerError
}

func (d *distrusted) Error() string { return fmt.Sprintf("%s: %v", bare(d.server), d.peer) }

// Unwrap returns ErrStranger and the error of the certificate.
func (d *distrusted) Unwrap() []error { return []error{ErrStranger, d.peer} }

// bare removes the scheme of an address.
func bare(server string) string { return strings.TrimPrefix(server, "http://") }

var tlsFound = errtext.Sprintf("the server uses TLS, but this command does not; give {tls-dir}, or {ca-file} " +
	"and {token-file}")

const (
	natsFound errtext.Text = "a NATS server answers there; by default the HTTP port of a coordinator is its NATS port " +
		"minus 2"
)

// malformed finds what net/http could not read as HTTP. Its error has no type.
var malformed = regexp.MustCompile(`malformed HTTP (?:response|status code|version) "(.*)"`)

// found turns an error of a connection into what was found at the address.
func found(server string, err error) error {
	var peer *certs.PeerError
	switch {
	case errors.Is(err, certs.ErrClear):
		return stranger(server, errtext.Sprintf("%s", certs.ErrClear))
	case errors.As(err, &peer) && peer.Fits:
		return &distrusted{server, peer}
	case errors.As(err, &peer):
		return fmt.Errorf("%s is %w: %w", bare(server), ErrStranger, peer)
	}
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
