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
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

// DefaultPatience is how long a request is sent again while no coordinator answers it.
const DefaultPatience = protocol.ClientPatience

const (
	tryTimeout  = protocol.ClientTry
	blobTimeout = 2 * time.Minute
	planTimeout = 10 * time.Minute // of a submission of an experiment: 250,000 runs take some seconds
	firstWait   = 20 * time.Millisecond
	longestWait = 500 * time.Millisecond
	// watchSilence is how long a stream of changes may be silent before it is opened again:
	// its coordinator may hang.
	watchSilence = protocol.WatchSilence
	longTry      = time.Second // after a longer try, Waiting is called at once
	// leastTry is the least time for a request, even without patience: within it, a
	// follower says that its leader does not answer.
	leastTry = protocol.ForwardSilence + 500*time.Millisecond
	// leastAnswer is the least time that a coordinator has for an answer.
	leastAnswer = 200 * time.Millisecond
	// probesPerSilence is how often a silent coordinator is probed before a request is
	// given up.
	probesPerSilence = 3
	// smallBody bounds the body of a brief request in bytes. A larger one may fill a slow
	// link.
	smallBody = 64 << 10
	// The bounds of responses in bytes. The rest is not read.
	maxJSON  = 256 << 20
	maxBytes = 4 << 30 // of a blob or a model
)

// Options say how long and how loudly a client tries. They must not change after the
// first request.
type Options struct {
	// Patience is how long a request is sent again while no coordinator answers.
	Patience time.Duration
	// Faithful is true if requests are sent again until their context is done, however
	// long the cluster has no leader or does not answer. It holds once a coordinator has
	// answered.
	Faithful bool
	// Waiting, if set, is called with the reason when a request has to be sent again. It
	// is also called when a request was given up at one of several coordinators. It may
	// be called concurrently.
	Waiting func(error)
}

// transport sends requests to one coordinator after the other, again and again, until one
// answers or patience ends.
type transport struct {
	*Options // of the client
	places   *places
	silent   time.Duration // after which a coordinator that answers nothing is given up
	maxJSON  int64         // bytes of a response in JSON
	met      atomic.Bool   // true once a coordinator has answered
	http     *http.Client
}

// call is one request. Without body and take, the request and its response are JSON.
type call struct {
	method, path string
	in, out      any                           // of JSON; nil: there is none
	body         func() (io.ReadCloser, error) // if set, opens the body for each try
	size         int64                         // of the body
	timeout      time.Duration                 // of a try
	limit        int64                         // bytes of a response; 0: take bounds it
	take         func(io.Reader) error         // reads a successful response

	stream  bool      // true if the response is a stream; timeout then bounds the wait for the next bytes
	told    bool      // true if a line of a stream has come
	ponders bool      // true if a coordinator that works may answer late, and answers probes meanwhile
	brief   bool      // true if a coordinator that works answers at once
	until   time.Time // a brief request is given up then
	unknown bool      // true if a try without an answer may have changed something
}

// json sends a request in JSON and decodes the response. Either may be nil.
func (t *transport) json(ctx context.Context, method, path string, in, out any) error {
	return t.do(ctx, &call{method: method, path: path, in: in, out: out, timeout: tryTimeout})
}

// do sends a request until it is answered or patience ends.
func (t *transport) do(ctx context.Context, k *call) error {
	if k.in != nil {
		b, err := json.Marshal(k.in)
		if err != nil {
			return err
		}
		k.body = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }
		k.size = int64(len(b))
	}
	if k.take == nil {
		k.limit, k.take = t.maxJSON, func(r io.Reader) error {
			if k.out == nil {
				return nil
			}
			return json.NewDecoder(r).Decode(k.out)
		}
	}
	began, pause := time.Now(), firstWait
	k.brief, k.until = !k.stream && k.timeout <= tryTimeout && k.size <= smallBody, began.Add(max(t.Patience, leastTry))
	for {
		hopeless, err := t.tryAll(ctx, k)
		if err == nil || hopeless {
			return err
		}
		if time.Now().Add(pause).After(began.Add(t.Patience)) && !t.tireless() && !k.told {
			servers := strings.ReplaceAll(strings.Join(t.places.all(), ", "), t.places.source.URLScheme()+"://", "")
			return &Unavailable{servers, err, k.unknown}
		}
		if t.Waiting != nil {
			t.Waiting(err)
		}
		if err := wait.For(ctx, pause); err != nil {
			return err
		}
		pause = min(2*pause, longestWait)
	}
}

// tireless reports whether requests are sent again without end.
func (t *transport) tireless() bool { return t.Faithful && t.met.Load() }

// tryAll tries every address until one answers. It returns hopeless if another try cannot
// succeed: the request was refused by a coordinator or by proxies, or no server at these addresses is a coordinator.
func (t *transport) tryAll(ctx context.Context, k *call) (hopeless bool, err error) {
	changes := false
	if r, err := http.NewRequest(k.method, k.path, nil); err == nil {
		changes = rights.Is(r)&rights.Changes != 0
	}
	strangers, refusals := 0, 0
	for turn := t.places.turn(); ; {
		if err != nil && k.brief && !time.Now().Before(k.until) && !t.tireless() {
			break // no time is left for the other addresses
		}
		server, ok := turn.next(ctx)
		if !ok {
			break
		}
		tried := time.Now()
		again, one := t.try(ctx, server, k)
		if !again {
			return true, one
		}
		if t.Waiting != nil && time.Since(tried) >= longTry { // the other addresses may take as long
			t.Waiting(one)
		}
		k.unknown = k.unknown || changes && perhapsDone(one)
		switch { // the error says the most that is known
		case byProxy(one):
			refusals++
			err = one
		case errors.Is(one, ErrStranger):
			if strangers++; !byProxy(err) {
				err = one
			}
		case !errors.Is(err, ErrStranger) && !byProxy(err):
			err = one
		}
		t.places.failed(server)
	}
	if refusals+strangers < len(t.places.given) {
		return false, err
	}
	return refusals > 0 || !t.met.Load(), err // a proxy may run while no coordinator does
}

// perhapsDone reports whether a request that failed may have taken effect: a coordinator
// did not answer it, or answered that it does not know.
func perhapsDone(err error) bool {
	var said *Error
	if errors.As(err, &said) {
		return said.Unknown
	}
	return !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, ErrStranger)
}

// try sends a request to a server once. again is true if another try may succeed. A brief
// request also ends if the server is silent, and with patience. A request over which the
// server ponders ends if the server is silent.
func (t *transport) try(ctx context.Context, server string, k *call) (again bool, err error) {
	timeout := k.timeout
	if k.brief && !t.tireless() {
		timeout = min(timeout, max(time.Until(k.until), leastAnswer)) // a busy machine wakes late
	}
	timed, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	over := time.AfterFunc(timeout, func() { cancel(silent{timeout.Round(100 * time.Millisecond)}) })
	defer over.Stop()
	asking, answered := timed, func() {}
	if k.brief || k.ponders {
		var end func()
		asking, answered, end = t.untilSilent(timed, server)
		defer end()
	}
	response, again, err := t.ask(ctx, asking, server, k)
	if err != nil {
		return again, err
	}
	defer response.Body.Close()
	answered()
	var content io.Reader = response.Body
	if k.stream {
		content = &noisyReader{&unsilent{response.Body, over, timeout}, func() { t.places.heard(server, false) }}
	} else if k.limit > 0 {
		content = &limited{r: response.Body, limit: k.limit, left: k.limit}
	}
	if err := k.take(content); err != nil {
		return ctx.Err() == nil && !errors.Is(err, errLong), short(ctx, asking, err)
	}
	return false, nil
}

// ask sends a request to a server once and returns a successful response. The caller
// closes its body. again is true if another try may succeed. limited is ctx with a
// timeout.
func (t *transport) ask(ctx, limited context.Context, server string, k *call) (response *http.Response, again bool,
	err error) {
	var body io.ReadCloser
	if k.body != nil {
		body, err = k.body()
	}
	var request *http.Request
	if err == nil {
		request, err = http.NewRequestWithContext(limited, k.method, server+k.path, body)
	}
	if err == nil {
		if body != nil {
			request.ContentLength = k.size
		}
		response, err = t.http.Do(request)
	}
	if err != nil {
		return nil, ctx.Err() == nil, found(server, short(ctx, limited, err))
	}
	again, err = refusal(server, response)
	if !errors.Is(err, ErrStranger) && !byProxy(err) {
		t.met.Store(true)
		t.places.heard(server, !again)
	}
	if err != nil {
		response.Body.Close()
		return nil, again, err
	}
	return response, false, nil
}

// untilSilent returns a context that ends, with silent as its cause, if the server
// answers neither the request nor probes for a while. The caller calls answered when the
// response begins, since the rest may take long, and end to end the context.
func (t *transport) untilSilent(ctx context.Context, server string) (watched context.Context, answered, end func()) {
	watched, cancel := context.WithCancelCause(ctx)
	enough := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(t.silent / probesPerSilence)
		defer tick.Stop()
		for heard := time.Now(); time.Since(heard) < t.silent; {
			select {
			case <-watched.Done():
				return
			case <-enough:
				return
			case <-tick.C:
			}
			if t.places.alive(watched, server, t.silent/probesPerSilence) {
				heard = time.Now()
			}
		}
		cancel(silent{t.silent})
	})
	return watched, func() { close(enough) }, func() {
		cancel(nil)
		done.Wait()
	}
}

var errLong = errors.New("the answer is too long")

// limited reads r, and fails after limit bytes if there are more.
type limited struct {
	r           io.Reader
	limit, left int64
}

// Read implements io.Reader. It reads one byte more than the limit, to find out whether
// there are more.
func (l *limited) Read(p []byte) (int, error) {
	n, err := l.r.Read(p[:min(int64(len(p)), l.left+1)])
	if l.left -= int64(n); l.left < 0 {
		return n - 1, fmt.Errorf("%w: it has more than %s", errLong, units.Format(l.limit))
	}
	return n, err
}

// noisyReader calls came for each piece that is read.
type noisyReader struct {
	io.Reader
	came func()
}

// Read implements io.Reader.
func (r *noisyReader) Read(p []byte) (n int, err error) {
	if n, err = r.Reader.Read(p); n > 0 {
		r.came()
	}
	return n, err
}

// unsilent reads a stream. A timer is over if the next bytes do not come in time: over a slow
// link, a line may take longer. Time in which nothing is read does not count.
type unsilent struct {
	io.Reader
	over *time.Timer
	time time.Duration
}

// Read implements io.Reader.
func (r *unsilent) Read(p []byte) (int, error) {
	r.over.Reset(r.time)
	defer r.over.Stop()
	return r.Reader.Read(p)
}

// at joins the elements of a path. Each stays one element for the server, whatever it
// contains.
func at(elements ...string) string {
	var b strings.Builder
	b.WriteString("/v1")
	for _, e := range elements {
		if e = url.PathEscape(e); e == "." || e == ".." { // cleaning the path would remove it
			e = strings.ReplaceAll(e, ".", "%2E")
		}
		b.WriteString("/" + e)
	}
	return b.String()
}

// ErrUnavailable is wrapped by the error of a request that no coordinator answered in
// time.
var ErrUnavailable = errors.New("no coordinator answers")

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

// maxSelf bounds what a coordinator says of itself, in bytes.
const maxSelf = 1 << 20

// prober sends each probe over a connection of its own, since a connection that hangs
// says nothing of the next.
type prober struct {
	http   *http.Client
	source *certs.Source // nil: in the clear, or with certificates of the web
}

func newProber(source *certs.Source) *prober {
	return &prober{&http.Client{Transport: source.Transport(&http.Transport{DisableKeepAlives: true}, certs.Proxy)},
		source}
}

// address removes the scheme that is the same for all coordinators.
func (p *prober) address(server string) string {
	return strings.TrimPrefix(server, p.source.URLScheme()+"://")
}

// alive reports whether a coordinator answers a probe within a time.
func (p *prober) alive(ctx context.Context, server string, within time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/healthz", nil)
	if err != nil {
		return false
	}
	response, err := p.http.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<10))
	return err == nil
}

// askOnce asks a coordinator what it knows, without another try, and decodes the
// response in JSON.
func (p *prober) askOnce(ctx context.Context, server, path string, v any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server+path, nil)
	if err != nil {
		return err
	}
	response, err := p.http.Do(request)
	if err != nil {
		return found(server, short(context.Background(), ctx, err))
	}
	defer response.Body.Close()
	if _, err := refusal(server, response); err != nil {
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

var errClear = errors.New("a token is never sent without TLS; connect to coordinators with TLS, and name the " +
	"authorities of the cluster")

// bearer sends a token with each request.
type bearer struct {
	http.RoundTripper
	token string
}

// RoundTrip implements http.RoundTripper.
func (b *bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" {
		return nil, errClear
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.RoundTripper.RoundTrip(r)
}

// CloseIdleConnections is for http.Client.
func (b *bearer) CloseIdleConnections() {
	if c, ok := b.RoundTripper.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
