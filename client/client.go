// Package client speaks the HTTP API of the coordinators (package protocol has
// its types). It knows several addresses, tries each, and goes on trying while
// the cluster elects a leader, so that a change of leader is not noticed. Every
// request may be sent again without harm: submissions carry a token, blobs are
// named by their content.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/protocol"
)

// DefaultPatience is how long a request is sent again while nobody answers it.
const DefaultPatience = protocol.ClientPatience

// The timeouts and waits of one try.
const (
	tryTimeout  = protocol.ClientTry
	blobTimeout = 2 * time.Minute
	firstWait   = 20 * time.Millisecond
	longestWait = 500 * time.Millisecond
	longTry     = time.Second // what takes longer is told of at once
)

// ErrUnavailable is wrapped by the error of a request that no coordinator
// answered in time.
var ErrUnavailable = errors.New("no coordinator answers")

// Unavailable is the error of a request that no coordinator answered in time; it wraps
// ErrUnavailable.
type Unavailable struct {
	Servers string // the addresses, separated by commas
	Last    error  // of the last try
	// Unknown: a try got no answer, or one that does not know it, and may have changed
	// something all the same.
	Unknown bool
}

func (e *Unavailable) Error() string {
	return fmt.Sprintf("%v at %s: %v", ErrUnavailable, e.Servers, e.Last)
}

// Unwrap lets errors.Is find ErrUnavailable and what the last try said.
func (e *Unavailable) Unwrap() []error { return []error{ErrUnavailable, e.Last} }

// Error is a coordinator's refusal.
type Error struct {
	Status  int // HTTP status
	Message string
	// Unknown: the request may have changed something all the same.
	Unknown bool
}

func (e *Error) Error() string { return e.Message }

// IsNotFound reports whether an error says that there is no such thing.
func IsNotFound(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Status == http.StatusNotFound
}

// IsConflict reports whether an error says that something of the name is there and is another.
func IsConflict(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Status == http.StatusConflict
}

// Client sends requests to the coordinators of one cluster. It is safe for
// concurrent use; its fields must not change after the first request.
//
// It learns the coordinators of the cluster from those at its addresses, and goes on with
// another where all of these fail.
type Client struct {
	// Patience is how long a request is sent again while nobody answers.
	Patience time.Duration
	// Faithful: once a coordinator has answered, requests are sent again until their
	// context is done, however long the cluster has no leader or nobody answers.
	Faithful bool
	// Waiting, where set, is called when a request has to be sent again, or was given up
	// after a while at one of several coordinators, with the reason. It may be called
	// concurrently.
	Waiting func(error)

	places   *places
	silence  time.Duration // of a watch
	silent   time.Duration // of a coordinator that is asked
	maxJSON  int64         // bytes of an answer in JSON
	maxBytes int64         // bytes of a blob or model
	met      atomic.Bool   // a coordinator has answered
	http     *http.Client
}

// New returns a client of the coordinators at servers: addresses host:port or
// URLs, separated by commas.
func New(servers string) (*Client, error) {
	c := &Client{Patience: DefaultPatience, silence: silence, silent: protocol.ClientSilence, maxJSON: maxJSON, maxBytes: maxBytes, http: &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: 16, IdleConnTimeout: 30 * time.Second, DisableCompression: true,
	}}}
	var given []string
	for _, s := range strings.Split(servers, ",") {
		if s = strings.TrimSpace(s); s == "" {
			continue
		}
		address, err := normalize(s)
		if err != nil {
			return nil, err
		}
		given = append(given, address)
	}
	if len(given) == 0 {
		return nil, errors.New("the address of a coordinator is missing")
	}
	c.places = newPlaces(given)
	return c, nil
}

func normalize(s string) (string, error) {
	if !strings.Contains(s, "://") {
		s = "http://" + s
	}
	scheme, address, _ := strings.Cut(s, "://")
	address = strings.ReplaceAll(strings.TrimSuffix(address, "/"), "%25", "%") // as a URL writes the % before a zone
	err := protocol.CheckAddress(address)
	if scheme != "http" && scheme != "https" {
		err = fmt.Errorf("%q is neither http nor https", scheme)
	}
	if err != nil {
		return "", fmt.Errorf("coordinator address %q: %w", strings.TrimPrefix(s, "http://"), err)
	}
	return (&url.URL{Scheme: scheme, Host: address}).String(), nil
}

// Servers lists the addresses that the client was given.
func (c *Client) Servers() []string { return c.places.given }

// Close ends idle connections. No request may come after it.
func (c *Client) Close() {
	c.places.close()
	c.http.CloseIdleConnections()
}

// call is one request; body, where set, is opened anew for each try.
type call struct {
	method, path string
	body         func() (io.ReadCloser, error)
	size         int64
	timeout      time.Duration
	limit        int64                 // bytes of an answer; 0: take bounds it by itself
	take         func(io.Reader) error // reads a successful answer
	unknown      bool                  // a try got no answer and may have changed something
}

// json makes the call of a request and an answer in JSON; both may be nil.
func jsonCall(method, path string, in, out any) (*call, error) {
	k := &call{method: method, path: path, timeout: tryTimeout, take: func(r io.Reader) error {
		if out == nil {
			return nil
		}
		return json.NewDecoder(r).Decode(out)
	}}
	if in == nil {
		return k, nil
	}
	b, err := json.Marshal(in)
	k.body = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }
	k.size = int64(len(b))
	return k, err
}

func (c *Client) json(ctx context.Context, method, path string, in, out any) error {
	k, err := jsonCall(method, path, in, out)
	if err != nil {
		return err
	}
	k.limit = c.maxJSON
	return c.do(ctx, k)
}

// do sends a request, again and again, to one address after the other, until one
// answers or patience ends.
func (c *Client) do(ctx context.Context, k *call) error {
	began, pause := time.Now(), firstWait
	for {
		hopeless, err := c.each(ctx, k, began)
		if err == nil || hopeless {
			return err
		}
		if time.Now().Add(pause).After(began.Add(c.Patience)) && !c.waitsOn() {
			return &Unavailable{c.names(), err, k.unknown}
		}
		if c.Waiting != nil {
			c.Waiting(err)
		}
		if err := wait.For(ctx, pause); err != nil {
			return err
		}
		pause = min(2*pause, longestWait)
	}
}

// changes reports whether a request that is heard changes something but blobs.
func (k *call) changes() bool {
	return k.method == http.MethodPost && k.path != at("datasets", "check") || k.method == http.MethodDelete
}

// lost reports whether a request may have been heard though no answer came, or was heard
// by one who does not know what became of it.
func lost(err error) bool {
	var said *Error
	if errors.As(err, &said) {
		return said.Unknown
	}
	return !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, ErrStranger)
}

// waitsOn reports whether requests are sent again for ever.
func (c *Client) waitsOn() bool { return c.Faithful && c.met.Load() }

// each tries every address until one answers; began is when the first was tried first.
// hopeless says that no other try may succeed: it was refused, or nobody at these
// addresses is a coordinator.
func (c *Client) each(ctx context.Context, k *call, began time.Time) (hopeless bool, err error) {
	strangers := 0
	for turn := c.places.turn(); ; {
		if err != nil && k.brief() && time.Since(began) >= max(c.Patience, leastTry) && !c.waitsOn() {
			break // no time is left for the others
		}
		server, ok := turn.next(ctx)
		if !ok {
			break
		}
		tried := time.Now()
		again, one := c.try(ctx, server, k, began)
		if !again {
			return true, one
		}
		if c.Waiting != nil && time.Since(tried) >= longTry { // the others may take as long
			c.Waiting(one)
		}
		k.unknown = k.unknown || k.changes() && lost(one)
		if errors.Is(one, ErrStranger) {
			strangers++
			err = one // tells more than that another does not answer
		} else if !errors.Is(err, ErrStranger) {
			err = one
		}
		c.places.failed(server)
	}
	return strangers == len(c.places.given) && !c.met.Load(), err // a proxy may be there while none runs
}

func (c *Client) names() string {
	return strings.ReplaceAll(strings.Join(c.places.all(), ", "), "http://", "")
}

// try sends a request to a server once; again says that another try may succeed.
func (c *Client) try(ctx context.Context, server string, k *call, began time.Time) (again bool, err error) {
	timeout := c.bounded(k, began)
	limited, cancel := context.WithTimeoutCause(ctx, timeout, silent{timeout.Round(100 * time.Millisecond)})
	defer cancel()
	if k.brief() {
		watched, questions := c.untilSilent(limited, server)
		defer questions.end()
		return c.once(ctx, watched, server, k, questions.answered)
	}
	return c.once(ctx, limited, server, k, func() {})
}

// once is try under a context that is limited; it calls answered when the answer begins.
func (c *Client) once(ctx, limited context.Context, server string, k *call, answered func()) (again bool, err error) {
	response, again, err := c.ask(ctx, limited, server, k)
	if err != nil {
		return again, err
	}
	defer response.Body.Close()
	answered()
	if err := k.take(atMost(response.Body, k.limit)); err != nil {
		return ctx.Err() == nil && !errors.Is(err, errLong), short(ctx, limited, err)
	}
	return false, nil
}

// ask sends a request to a server once and returns a successful answer, whose body the caller
// closes; again says that another try may succeed. limited is ctx with a timeout.
func (c *Client) ask(ctx, limited context.Context, server string, k *call) (r *http.Response, again bool, err error) {
	if r, err = c.send(limited, server, k); err != nil {
		return nil, ctx.Err() == nil, found(server, short(ctx, limited, err))
	}
	if r.StatusCode < 300 && !page(r) {
		c.met.Store(true)
		c.places.heard(server)
		c.places.answered(server)
		return r, false, nil
	}
	defer r.Body.Close()
	if again, err = refusal(server, r); !errors.Is(err, ErrStranger) {
		c.met.Store(true)
		c.places.heard(server)
	}
	if !again {
		c.places.answered(server)
	}
	return nil, again, err
}

func (c *Client) send(ctx context.Context, server string, k *call) (*http.Response, error) {
	var body io.ReadCloser
	if k.body != nil {
		b, err := k.body()
		if err != nil {
			return nil, err
		}
		body = b
	}
	r, err := http.NewRequestWithContext(ctx, k.method, server+k.path, body)
	if err != nil {
		return nil, err
	}
	if body != nil {
		r.ContentLength = k.size
	}
	return c.http.Do(r)
}

// short takes net/http's method and URL off an error of a try; limited is its context,
// which is ctx with a timeout.
func short(ctx, limited context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if limited.Err() != nil {
		return overdue(limited, err)
	}
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// maxProblem bounds the body of an error that is read.
const maxProblem = 64 << 10

// refusal returns the error that an answer is, and whether to try again.
func refusal(server string, r *http.Response) (again bool, err error) {
	if r.StatusCode < 300 {
		return true, stranger(server, "the server answers with a web page")
	}
	b, _ := io.ReadAll(io.LimitReader(r.Body, maxProblem))
	var p protocol.Problem
	if json.Unmarshal(b, &p) == nil && p.Error != "" {
		return retryable(r.StatusCode), &Error{r.StatusCode, p.Error, p.Unknown}
	}
	what, away := unlikely(r, string(b))
	if away {
		return true, fmt.Errorf("%s: %s", bare(server), what)
	}
	return true, stranger(server, what)
}

// at joins path elements. Each is one element for who reads the path, whatever it holds.
func at(elements ...string) string {
	var b strings.Builder
	b.WriteString("/v1")
	for _, e := range elements {
		if e = url.PathEscape(e); e == "." || e == ".." { // else the path would be cleaned of it
			e = strings.ReplaceAll(e, ".", "%2E")
		}
		b.WriteString("/" + e)
	}
	return b.String()
}

// modelAt is the path of a model, whose name may have several elements.
func modelAt(name string) string {
	return at(append([]string{"models"}, strings.Split(name, "/")...)...)
}
